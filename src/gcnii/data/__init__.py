"""`load(name or path)` → Graph: the catalog, downloads, generators and one reader per format."""

from gcnii.data.catalog import CATALOG as CATALOG
from gcnii.data.catalog import Entry as Entry
from gcnii.data.catalog import lookup as lookup
from gcnii.data.download import fetch as fetch
from gcnii.data.generators import customer_tables as customer_tables
from gcnii.data.geometry import Neighbourhood as Neighbourhood
from gcnii.data.geometry import neighbourhood as neighbourhood
from gcnii.data.load import load as load
from gcnii.data.load import load_share as load_share
