"""What the columns of a user's table hold and mean, and the features X made of them."""

from gcnii.columns.column import Column as Column
from gcnii.columns.column import Columns as Columns
from gcnii.columns.table import Cells as Cells
from gcnii.columns.table import Table as Table
from gcnii.columns.table import refuse_other_columns as refuse_other_columns
