"""Batches: what a step of training sees of a graph.  A full graph is one batch."""

from gcnii.batches.batch import Batch as Batch
from gcnii.batches.batch import Batches as Batches
from gcnii.batches.batch import Batching as Batching
from gcnii.batches.batch import Full as Full
from gcnii.batches.batch import History as History
from gcnii.batches.clusters import cluster as cluster
from gcnii.batches.clusters import cutter as cutter
from gcnii.batches.neighbours import Hops as Hops
from gcnii.batches.neighbours import Neighbours as Neighbours
from gcnii.batches.subgraphs import Subgraphs as Subgraphs
