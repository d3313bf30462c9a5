"""`load(name or folder)` → Graph: the catalog, the downloads and one reader for each format."""

from gcnii.data.catalog import CATALOG as CATALOG
from gcnii.data.catalog import lookup as lookup
from gcnii.data.catalog import preset as preset
from gcnii.data.entry import Entry as Entry
from gcnii.data.errors import DataError as DataError
from gcnii.data.fetch import fetch as fetch
from gcnii.data.fetch import fetch_neighbourhood as fetch_neighbourhood
from gcnii.data.load import load as load
from gcnii.data.neighbourhoods import Neighbourhood as Neighbourhood
from gcnii.data.neighbourhoods import neighbourhood as neighbourhood
