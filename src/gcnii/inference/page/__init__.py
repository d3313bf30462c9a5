"""The page of a run: one HTML file with all that is known about a trained model.

write_page  write it: scores, curves, confusions, calibration, and nodes with their explanations
"""

from gcnii.inference.page.page import write_page as write_page
