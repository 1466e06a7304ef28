"""A REST service over PostgreSQL as PostgREST makes one of a schema: tables as
paths, filters as query parameters, errors as PostgreSQL says them.

    GET    /posts?user_id=eq.1&order=id.desc&limit=2&select=id,title
    GET    /posts/7             one row, or 404
    POST   /posts               a row, or a list of them -> 201 with the rows
    PATCH  /posts?id=eq.7       -> the rows
    DELETE /posts/7             -> 204, or 404
"""
import json

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

OPERATORS = {"eq": "=", "neq": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">=", "like": "LIKE"}
RESERVED = {"order", "limit", "offset", "select"}


class Rest:
    """handle is upstream.Service's."""

    def __init__(self, **connect):
        self.connect = connect

    def _where(self, filters):
        parts, values = [], []
        for column, value in filters:
            name, _, operand = value.partition(".")
            if name not in OPERATORS:
                raise ValueError(f"failed to parse filter ({value})")
            parts.append(sql.SQL("{} " + OPERATORS[name].replace("%", "%%") + " %s").format(sql.Identifier(column)))
            values.append(operand)
        return (sql.SQL(" WHERE ") + sql.SQL(" AND ").join(parts) if parts else sql.SQL("")), values

    def _select(self, cursor, table, r):
        options = dict(p for p in r.query if p[0] in RESERVED)
        where, values = self._where([p for p in r.query if p[0] not in RESERVED])
        names = options.get("select", "*").split(",")
        columns = sql.SQL("*") if names == ["*"] else sql.SQL(",").join(map(sql.Identifier, names))
        query = sql.SQL("SELECT {} FROM {}").format(columns, table) + where
        if "order" in options:
            column, _, way = options["order"].partition(".")
            query += sql.SQL(" ORDER BY {}").format(sql.Identifier(column)) + sql.SQL(" DESC" if way == "desc" else "")
        for word in ("limit", "offset"):
            if word in options:
                query += sql.SQL(f" {word.upper()} {int(options[word])}")
        cursor.execute(query, values)
        return cursor.fetchall()

    def _write(self, cursor, table, r):
        rows = json.loads(r.body)
        if r.method == "POST":
            made = []
            for row in rows if isinstance(rows, list) else [rows]:
                cursor.execute(sql.SQL("INSERT INTO {} ({}) VALUES ({}) RETURNING *").format(
                    table, sql.SQL(",").join(map(sql.Identifier, row)), sql.SQL(",").join([sql.Placeholder()] * len(row))),
                    list(row.values()))
                made += cursor.fetchall()
            return made
        where, values = self._where(r.query)
        cursor.execute(sql.SQL("UPDATE {} SET {}").format(table, sql.SQL(",").join(
            sql.SQL("{} = %s").format(sql.Identifier(c)) for c in rows)) + where + sql.SQL(" RETURNING *"),
            [*rows.values(), *values])
        return cursor.fetchall()

    def _serve(self, cursor, r):
        name, _, key = r.path.strip("/").partition("/")
        table = sql.Identifier(name)
        if r.method in ("GET", "HEAD") and not key:
            return 200, {}, self._select(cursor, table, r)
        if r.method in ("GET", "HEAD"):
            cursor.execute(sql.SQL("SELECT * FROM {} WHERE id = %s").format(table), [key])
            row = cursor.fetchone()
            return (200, {}, row) if row else (404, {}, {"message": f"there is no {name} {key}"})
        if r.method in ("POST", "PATCH"):
            return (201 if r.method == "POST" else 200), {}, self._write(cursor, table, r)
        if r.method == "DELETE" and key:
            cursor.execute(sql.SQL("DELETE FROM {} WHERE id = %s").format(table), [key])
            return (204, {}, b"") if cursor.rowcount else (404, {}, {"message": f"there is no {name} {key}"})
        return 405, {}, {"message": "there is no such operation"}

    def handle(self, r):
        try:
            with psycopg.connect(**self.connect) as c, c.cursor(row_factory=dict_row) as cursor:
                return self._serve(cursor, r)
        except psycopg.Error as e:
            status = {"23505": 409, "42P01": 404}.get(e.sqlstate, 400)
            return status, {}, {"code": e.sqlstate, "message": str(e).split("\n", maxsplit=1)[0]}
        except ValueError as e:
            return 400, {}, {"code": "PGRST100", "message": str(e)}
