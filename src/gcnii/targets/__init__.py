"""What is predicted: its loss, scores, probabilities, calibration and prediction sets."""

from gcnii.targets.target import Classes as Classes
from gcnii.targets.target import SeveralLabels as SeveralLabels
from gcnii.targets.target import Target as Target
from gcnii.targets.target import target_of as target_of
