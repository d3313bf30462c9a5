"""Labels out: the table of what a trained model predicts, for a graph's nodes or for new ones.

label_table    node, label, probability, known label, split and the probability of each class
predict_new    the same table for nodes that were not there when the model was trained
write_table    a table as a .csv or .parquet file
explain        why a node has its label: shares of its score, links that matter, proof by removal
harmless       a table whose cells no spreadsheet runs as formulas
"""

from gcnii.inference.new_nodes import predict_new as predict_new
from gcnii.inference.predict import harmless as harmless
from gcnii.inference.predict import label_table as label_table
from gcnii.inference.predict import write_table as write_table
