"""A graph cut into parts: a folder from which each of several processes reads its own alone."""

from gcnii.data.readers.parts.manifest import FORM as FORM
from gcnii.data.readers.parts.manifest import reads as reads
from gcnii.data.readers.parts.read import read as read
from gcnii.data.readers.parts.read import read_piece as read_piece
