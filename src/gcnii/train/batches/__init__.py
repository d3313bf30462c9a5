"""Batches: what a step of training sees of a graph.  A full graph is one batch."""

from gcnii.train.batches.batch import Batch as Batch
from gcnii.train.batches.batch import Batches as Batches
from gcnii.train.batches.batch import Batching as Batching
from gcnii.train.batches.batch import Full as Full
from gcnii.train.batches.batch import History as History
from gcnii.train.batches.batch import Subgraphs as Subgraphs
from gcnii.train.batches.clusters import cluster as cluster
from gcnii.train.batches.clusters import cutter as cutter
from gcnii.train.batches.neighbours import Hops as Hops
from gcnii.train.batches.neighbours import Neighbours as Neighbours
