"""The paper's theorems on a graph, with numbers; and its errata."""

from gcnii_paper.theory.study import Study as Study
from gcnii_paper.theory.study import karate_club as karate_club
