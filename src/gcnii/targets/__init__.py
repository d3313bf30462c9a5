"""What is predicted: its loss, scores, probabilities, calibration and prediction sets."""

from gcnii.targets.kinds import Classes as Classes
from gcnii.targets.kinds import SeveralLabels as SeveralLabels
from gcnii.targets.kinds import target_of as target_of
from gcnii.targets.target import Target as Target
