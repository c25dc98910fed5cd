#!/usr/bin/env python3
"""A REST catalog of Iceberg around PyIceberg's SqlCatalog, and its client RestCatalog.

    catalog.py serve FOLDER [PORT]   serves on the loopback until it is ended; prints its port
    catalog.py read URI [N]          columns and rows of plant.meters.E, as it is or of its snapshot number N
    catalog.py state URI             snapshots, head, refs, columns and properties of plant.meters.E
    catalog.py tag URI NAME N        tags snapshot number N
    catalog.py write URI             deletes rows, as another writer
    catalog.py drop URI              drops the table without its files

The server asks for the bearer token TOKEN and the warehouse `w`, has the prefix `of/w`, writes a line a request to FOLDER/requests, and
does once what FOLDER/fault says: `lose` applies the next change and closes the connection, `refuse` answers it with 503, `race` answers
it with 409. Requests are parsed by PyIceberg's own models.
"""

import http.server
import json
import os
import pathlib
import sys
import urllib.parse

TABLE = ("plant", "meters", "E")


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.handle_request("GET")

    def do_POST(self):
        self.handle_request("POST")

    def do_HEAD(self):
        self.handle_request("HEAD")

    def do_DELETE(self):
        self.handle_request("DELETE")

    def handle_request(self, method):
        from pydantic import ValidationError
        from pyiceberg import exceptions

        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urllib.parse.urlsplit(self.path)
        fault = FOLDER / "fault"
        planned = fault.read_text() if fault.exists() and "/tables/" in url.path and method == "POST" else ""
        try:
            if planned:
                fault.unlink()
            if planned == "refuse":
                raise Refused(503, "maintenance")
            if planned == "race":
                raise Refused(409, "another commit came first")
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                raise Refused(401, f"not authorized: {self.headers.get('Authorization')}")
            status, answer = 200, self.answer(method, url, json.loads(body or b"{}"))
        except Refused as error:
            status, answer = error.status, error
        except (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError) as error:
            status, answer = 404, error
        except (exceptions.CommitFailedException, exceptions.TableAlreadyExistsError,
                exceptions.NamespaceAlreadyExistsError) as error:
            status, answer = 409, error
        except (ValidationError, exceptions.ValidationError, ValueError) as error:
            status, answer = 400, error

        with open(FOLDER / "requests", "a") as file:
            file.write(f"{method} {url.path} {status}\n")
        if planned == "lose":
            self.connection.close()
            return
        if isinstance(answer, Exception):
            message = str(answer) or type(answer).__name__
            answer = {"error": {"message": message, "type": type(answer).__name__, "code": status}}
        text = b"" if method == "HEAD" else (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def answer(self, method, url, body):
        from pyiceberg.catalog.rest import RegisterTableRequest, TableResponse
        from pyiceberg.table import CommitTableRequest

        query = urllib.parse.parse_qs(url.query)
        if url.path == "/v1/config":
            if query.get("warehouse") != ["w"]:
                raise Refused(404, "there is no such warehouse")
            return {"defaults": {}, "overrides": {"prefix": "of/w"}}
        if not url.path.startswith("/v1/of/w/namespaces"):
            raise Refused(404, "there is no such path")

        steps = [urllib.parse.unquote(step) for step in url.path.removeprefix("/v1/of/w/").split("/")]
        levels = tuple(steps[1].split("\x1f")) if len(steps) > 1 else ()
        loaded = lambda table: TableResponse(metadata_location=table.metadata_location, metadata=table.metadata).model_dump_json(by_alias=True, exclude_none=True)
        match (method, steps[2:]):
            case ("POST", []) if not levels:
                CATALOG.create_namespace(tuple(body["namespace"]), body.get("properties", {}))
                return {"namespace": body["namespace"], "properties": {}}
            case ("GET", []) if levels:
                return {"namespace": levels, "properties": CATALOG.load_namespace_properties(levels)}
            case ("POST", ["register"]):
                request = RegisterTableRequest.model_validate({"overwrite": False, **body})
                return loaded(CATALOG.register_table((*levels, request.name), request.metadata_location))
            case ("GET" | "HEAD", ["tables", name]):
                return loaded(CATALOG.load_table((*levels, name)))
            case ("POST", ["tables", name]):
                request = CommitTableRequest.model_validate(body)
                table = CATALOG.load_table((*levels, name))
                committed = CATALOG.commit_table(table, request.requirements, request.updates)
                return committed.model_dump_json(by_alias=True, exclude_none=True)
            case ("DELETE", ["tables", name]):
                CATALOG.drop_table((*levels, name))
                return {}
        raise Refused(404, "there is no such path")


def rest(uri):
    from pyiceberg.catalog.rest import RestCatalog

    return RestCatalog("c", uri=uri, warehouse="w", token=TOKEN)


def in_order(table):
    return sorted(table.metadata.snapshots, key=lambda snapshot: snapshot.sequence_number)


def say(**what):
    print(json.dumps(what, default=str, sort_keys=True))


if __name__ == "__main__":
    what, place, *more = sys.argv[1:]
    TOKEN = os.environ["TOKEN"]
    if what == "serve":
        from pyiceberg.catalog.sql import SqlCatalog

        FOLDER = pathlib.Path(place)
        CATALOG = SqlCatalog("c", uri=f"sqlite:///{FOLDER}/catalog.db", warehouse=f"file://{FOLDER}/warehouse")
        server = http.server.HTTPServer(("127.0.0.1", int(more[0]) if more else 0), Handler)
        print(server.server_address[1], flush=True)
        server.serve_forever()

    catalog = rest(place)
    if what == "drop":
        catalog.drop_table(TABLE)
        sys.exit()
    table = catalog.load_table(TABLE)
    match what:
        case "read":
            snapshot = in_order(table)[int(more[0])].snapshot_id if more else None
            rows = table.scan(snapshot_id=snapshot).to_arrow()
            texts = [[None if value is None else str(value) for value in row.values()] for row in rows.to_pylist()]
            say(columns=rows.column_names, rows=texts)
        case "state":
            snapshots = [snapshot.snapshot_id for snapshot in in_order(table)]
            say(snapshots=snapshots, head=table.current_snapshot().snapshot_id, refs=sorted(table.refs()),
                columns=[[field.field_id, field.name] for field in table.schema().fields], uuid=table.metadata.table_uuid,
                properties=dict(table.properties))
        case "tag":
            table.manage_snapshots().create_tag(in_order(table)[int(more[1])].snapshot_id, more[0]).commit()
        case "write":
            table.delete("meter = 2")
    sys.stdout.flush()
    # Threads of Arrow do not always end in peace.
    os._exit(0)
