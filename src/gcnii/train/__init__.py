"""Recipe, fit (the only loop), replicas, checkpoints, bundles."""

from gcnii.train.group import Diverged as Diverged
from gcnii.train.loop import Epoch as Epoch
from gcnii.train.loop import fit as fit
from gcnii.train.plan import Plan as Plan
from gcnii.train.plan import make_plan as make_plan
from gcnii.train.recipe import Recipe as Recipe
from gcnii.train.result import BundleError as BundleError
from gcnii.train.result import Result as Result
from gcnii.train.result import open_bundle as open_bundle
