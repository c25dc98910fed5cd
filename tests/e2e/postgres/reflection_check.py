"""Reads the tables of a server by SQLAlchemy's reflection: reflection_check.py PORT."""

import sys

import sqlalchemy as sa


def main():
    engine = sa.create_engine(f"postgresql+psycopg://ada@127.0.0.1:{sys.argv[1]}/tidetable")
    inspector = sa.inspect(engine)
    assert inspector.default_schema_name == "records"
    assert set(inspector.get_schema_names()) >= {"records", "cells", "rows", "exports", "runs"}
    assert inspector.get_table_names() == ["T"], inspector.get_table_names()
    assert inspector.get_view_names("rows") == ["T"], inspector.get_view_names("rows")
    assert inspector.has_table("T") and not inspector.has_table("nothing")

    kinds = {column["name"]: str(column["type"]) for column in inspector.get_columns("T")}
    assert kinds == {
        "id": "NUMERIC(20, 0)", "ts": "TIMESTAMP", "small": "BIGINT", "big": "BIGINT", "price": "NUMERIC(12, 3)",
        "ratio": "DOUBLE PRECISION", "ok": "BOOLEAN", "day": "DATE", "name": "TEXT"}, kinds
    assert inspector.get_pk_constraint("T")["constrained_columns"] == []
    for what in (inspector.get_foreign_keys, inspector.get_indexes, inspector.get_unique_constraints,
                 inspector.get_check_constraints):
        assert what("T") == [], what
    assert inspector.get_table_comment("T") == {"text": None}

    metadata = sa.MetaData()
    metadata.reflect(engine)
    table = metadata.tables["T"]
    with engine.connect() as conn:
        query = sa.select(table.c.ok, sa.func.count().label("n")).where(table.c.small > 0).group_by(table.c.ok)
        assert sum(row.n for row in conn.execute(query)) > 0
        hours = sa.select(sa.func.date_trunc("hour", table.c.ts).label("hour"), sa.func.avg(table.c.price)).group_by("hour")
        assert len(conn.execute(hours).all()) > 3
    # All schemas, as dashboards read them.
    for schema in ("cells", "rows", "runs"):
        sa.MetaData().reflect(engine, schema=schema, views=True)


main()
