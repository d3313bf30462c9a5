"""Why a node has its label: the shares of its score, the links that matter, and a check by removal.

explain      the Explanation of one node, by the best run of a training
Explanation  a sentence, the shares and links behind it, a JSON document, a drawing
"""

from gcnii.inference.explaining.explain import explain as explain
from gcnii.inference.explaining.explanation import Explanation as Explanation
