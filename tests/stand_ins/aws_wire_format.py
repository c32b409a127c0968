"""AWS's query protocols by botocore's own models: a form as the values it carries, and values as the XML of an answer.

Every request is validated by the model, and every answer is read back by botocore before it is sent.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.parsers import create_parser
from botocore.session import Session
from botocore.validate import ParamValidator

SERVICES = {"2011-01-01": "autoscaling", "2016-11-15": "ec2", "2011-06-15": "sts"}


class Malformed(AssertionError):
    """A request that AWS would not take."""


@cache
def model(service: str) -> Any:
    """botocore's model of a service."""
    return Session().get_service_model(service)


def service_of(form: Mapping[str, str]) -> str:
    """The service that a call is for, by the version it names."""
    return SERVICES[form["Version"]]


def read_form(form: Mapping[str, str]) -> dict[str, Any]:
    """The values of a call. Raises ``Malformed`` where the model does not take them, or does not know one."""
    service = service_of(form)
    shape = model(service).operation_model(form["Action"]).input_shape
    left = {key: value for key, value in form.items() if key not in ("Action", "Version")}
    values = _value(shape, "", left, service) if shape is not None else {}
    if left:
        raise Malformed(f"{form['Action']}: the model knows no {sorted(left)}")
    report = ParamValidator().validate(values, shape)
    if report.has_errors():
        raise Malformed(f"{form['Action']}: {report.generate_report()}")
    return dict(values)


def _value(shape: Any, prefix: str, left: dict[str, str], service: str) -> Any:
    if shape.type_name == "structure":
        found = {}
        for name, member in shape.members.items():
            key = f"{prefix}.{_wire_name(member, name, service)}".lstrip(".")
            if any(each == key or each.startswith(f"{key}.") for each in left):
                found[name] = _value(member, key, left, service)
        return found
    if shape.type_name == "list":
        item = prefix if service == "ec2" else f"{prefix}.member"
        values: list[Any] = []
        while any(
            each == f"{item}.{len(values) + 1}" or each.startswith(f"{item}.{len(values) + 1}.") for each in left
        ):
            values.append(_value(shape.member, f"{item}.{len(values) + 1}", left, service))
        return values
    text = left.pop(prefix)
    match shape.type_name:
        case "integer" | "long":
            return int(text)
        case "boolean":
            if text not in ("true", "false"):
                raise Malformed(f"{prefix} is {text!r}: neither true nor false")
            return text == "true"
    return text


def _wire_name(member: Any, name: str, service: str) -> str:
    if service != "ec2":
        return str(member.serialization.get("name", name))
    return str(member.serialization.get("queryName") or _upper(member.serialization.get("name", name)))


def _upper(name: str) -> str:
    return name[:1].upper() + name[1:]


def write_answer(service: str, action: str, values: dict[str, Any]) -> bytes:
    """The XML of an answer, which botocore reads as these very values."""
    shape = model(service).operation_model(action).output_shape
    inner = "".join(_members(shape, values)) if shape is not None else ""
    wrapped = inner if service == "ec2" else f"<{action}Result>{inner}</{action}Result>"
    request = (
        "<requestId>r-1</requestId>"
        if service == "ec2"
        else "<ResponseMetadata><RequestId>r-1</RequestId></ResponseMetadata>"
    )
    space = f"http://{service}.amazonaws.com/doc/"
    text = f'<{action}Response xmlns="{space}">{wrapped}{request}</{action}Response>'.encode()
    if shape is not None:
        parser = create_parser("ec2" if service == "ec2" else "query")
        read = parser.parse({"body": text, "headers": {}, "status_code": 200}, shape)
        del read["ResponseMetadata"]
        missing = {key for key in values if values[key] not in ([], None)} - read.keys()
        assert not missing, f"botocore reads no {missing} in {text!r}"
        report = ParamValidator().validate(read, shape)
        assert not report.has_errors(), report.generate_report()
    return text


def _members(shape: Any, values: Mapping[str, Any]) -> list[str]:
    unknown = values.keys() - shape.members.keys()
    assert not unknown, f"{shape.name} has no {unknown}"
    return [
        _element(shape.members[name], str(shape.members[name].serialization.get("name", name)), value)
        for name, value in values.items()
        if value is not None
    ]


def _element(shape: Any, tag: str, value: Any) -> str:
    match shape.type_name:
        case "structure":
            inner = "".join(_members(shape, value))
        case "list":
            item = str(shape.member.serialization.get("name", "member"))
            inner = "".join(_element(shape.member, item, each) for each in value)
        case "boolean":
            inner = "true" if value else "false"
        case "timestamp":
            assert isinstance(value, datetime)
            inner = f"{value:%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"
        case _:
            inner = escape(str(value))
    return f"<{tag}>{inner}</{tag}>"


def read_json(service: str, action: str, body: bytes) -> dict[str, Any]:
    """The values of a call of a JSON interface. Raises ``Malformed`` where the model does not take them."""
    values: dict[str, Any] = json.loads(body)
    report = ParamValidator().validate(values, model(service).operation_model(action).input_shape)
    if report.has_errors():
        raise Malformed(f"{action}: {report.generate_report()}")
    return values


def write_json(service: str, action: str, values: dict[str, Any]) -> bytes:
    """The answer of a JSON interface, which botocore reads as these very values."""
    text = json.dumps(values).encode()
    shape = model(service).operation_model(action).output_shape
    read = create_parser("json").parse({"body": text, "headers": {}, "status_code": 200}, shape)
    assert read.items() >= values.items(), f"botocore reads {read}"
    return text


def read_rest(service: str, method: str, target: str, body: bytes) -> tuple[str, dict[str, Any]]:
    """The call and the values of a REST interface's request. Raises ``Malformed`` where no operation takes them."""
    path, _, query = target.partition("?")
    found, rest = {}, json.loads(body or b"{}")
    for action in model(service).operation_names:
        http = model(service).operation_model(action).http
        pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", http["requestUri"])
        if http["method"] == method and (match := re.fullmatch(pattern, path)):
            found[action] = match.groupdict()
    if len(found) != 1:
        raise Malformed(f"{method} {target} is {list(found) or 'no call'}")
    ((action, named),) = found.items()
    shape = model(service).operation_model(action).input_shape
    by_wire = {m.serialization.get("name", name): name for name, m in shape.members.items()}
    values = {by_wire[key]: value for key, value in {**named, **dict(parse_qsl(query)), **rest}.items()}
    report = ParamValidator().validate(values, shape)
    if report.has_errors():
        raise Malformed(f"{action}: {report.generate_report()}")
    return action, values


def write_rest(service: str, action: str, values: dict[str, Any]) -> bytes:
    """The answer of a REST interface, which botocore reads as these very values."""
    text = json.dumps(values).encode()
    shape = model(service).operation_model(action).output_shape
    read = create_parser("rest-json").parse({"body": text, "headers": {}, "status_code": 200}, shape)
    assert read.items() >= values.items(), f"botocore reads {read}"
    return text


def signature_holds(url: str, body: bytes, headers: Mapping[str, str], secret: str, method: str = "POST") -> bool:
    """Whether botocore signs this request as its sender did."""
    said = dict(part.split("=", 1) for part in headers["authorization"].split(" ", 1)[1].split(", "))
    key, _, region, service, _ = said["Credential"].split("/")
    names = said["SignedHeaders"].split(";")
    request = AWSRequest(method, url, headers={name: headers[name] for name in names if name != "host"}, data=body)
    request.context["timestamp"] = headers["x-amz-date"]
    token = headers.get("x-amz-security-token")
    auth = SigV4Auth(Credentials(key, secret, token), service, region)
    to_sign = auth.string_to_sign(request, auth.canonical_request(request))
    return bool(auth.signature(to_sign, request) == said["Signature"])
