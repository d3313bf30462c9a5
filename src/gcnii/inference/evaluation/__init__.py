"""What is known about a model's errors: scores with intervals, baselines, tables and warnings."""

from gcnii.inference.evaluation.evaluate import evaluate as evaluate
from gcnii.inference.evaluation.evaluation import Evaluation as Evaluation
