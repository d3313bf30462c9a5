"""`load(name or folder)` → Graph: the catalog, the downloads and one reader for each format."""

from gcnii.data.catalog import CATALOG as CATALOG
from gcnii.data.catalog import lookup as lookup
from gcnii.data.entry import Entry as Entry
from gcnii.data.fetch import fetch as fetch
from gcnii.data.fetch import fetch_neighbourhood as fetch_neighbourhood
from gcnii.data.geometry.neighbourhoods import Neighbourhood as Neighbourhood
from gcnii.data.geometry.neighbourhoods import neighbourhood as neighbourhood
from gcnii.data.load import load as load
