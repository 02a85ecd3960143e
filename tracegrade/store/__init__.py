"""DuckDB only here: `Store.open`, `Store.loading`, `Store.traces`, `Store.query`."""

from tracegrade.store.db import DERIVED_TABLES, QueryResult, Store
from tracegrade.store.loading import Loading

__all__ = ["DERIVED_TABLES", "Loading", "QueryResult", "Store"]
