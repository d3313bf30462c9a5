"""The paper's theorems on a graph, with numbers; and its errata."""

from gcnii_paper.theory.karate import karate_club as karate_club
from gcnii_paper.theory.study import Study as Study
