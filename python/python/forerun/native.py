"""Targets of fsspec that the engine reads by itself, with the credentials, endpoint and options of the target.

Problem: a range that goes by way of the target's Python code holds the interpreter's lock and the one event loop of
fsspec, and s3fs has 10 connections. Mechanism: `reached` gives the address of an object and the variables that lead
the engine's own client there; or the reason why an option has no counterpart, and then the target reads.

| target | taken over | the target reads where there are |
| --- | --- | --- |
| s3fs | keys that botocore found, without an end; endpoint, region, `anon`, `requester_pays` | credentials that expire, `version_aware`, `s3_additional_kwargs`, `verify`, proxies, virtual addresses of an endpoint |
| gcsfs | an endpoint, that of `STORAGE_EMULATOR_HOST`, too; no credentials, a file or an access token as `token` | other tokens, `requester_pays`, `session_kwargs`, `version_aware`, a client certificate |
| adlfs | connection string, account name with key or `sas_token`, `anon`, `account_host` | credential objects, `client_id`, `request_session`, `location_mode`, `version_aware`, connection strings of an emulator by its name |
| http | the address | `client_kwargs`, `get_client`, options of requests, servers without strong ETags |
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from fsspec.spec import AbstractFileSystem


class Reached(NamedTuple):
    """An object by the engine's own client."""

    url: str
    variables: dict[str, str]
    # Whether an ETag of the target's listing names the version.
    knows_tags: bool = False

    @property
    def bucket(self) -> tuple[str, int]:
        """What has one answer for all of its objects: the same server, credentials and permissions."""
        return "/".join(self.url.split("/", 3)[:3]), hash(frozenset(self.variables.items()))


class UnknownOptionError(Exception):
    """An option without a counterpart: the target reads."""


# No file of credentials is looked for: the target has found its own.
_NO_FILES = {
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_CONFIG_FILE": os.devnull,
    "HOME": os.devnull,
}

# Options of botocore's client that change no answer to a reader: numbers of connections and attempts, times.
_HARMLESS = {
    "connect_timeout",
    "max_pool_connections",
    "read_timeout",
    "region_name",
    "retries",
    "s3",
    "signature_version",
    "tcp_keepalive",
    "user_agent",
    "user_agent_extra",
}


def _refuse(fs: AbstractFileSystem, *options: str) -> None:
    for option in options:
        if getattr(fs, option, None):
            raise UnknownOptionError(option)


class _Account(NamedTuple):
    """The settings that a file system of s3fs has from its options, botocore's variables and files."""

    endpoint: str
    region: str | None
    credentials: Any
    # Of botocore's section `s3`.
    options: dict[str, Any]


def _account(fs: Any) -> _Account:
    """The settings of s3fs, without its client where an endpoint is given: to make one takes a tenth of a second."""
    endpoint = None if _has_client(fs) else _endpoint(fs)
    if endpoint is None:
        client = fs.s3
        signer = client._request_signer
        region = signer.region_name or client.meta.region_name
        return _Account(client.meta.endpoint_url, region, signer._credentials, client.meta.config.s3 or {})
    session = _session(fs)
    region = fs.client_kwargs.get("region_name") or fs.config_kwargs.get("region_name")
    options = {**(session.get_config_variable("s3") or {}), **(fs.config_kwargs.get("s3") or {})}
    return _Account(endpoint, region or session.get_config_variable("region"), _credentials(fs), options)


def _has_client(fs: Any) -> bool:
    return fs._s3 is not None or fs.session is not None


def _session(fs: Any) -> Any:
    """Botocore's session with the options of s3fs's own, which only coroutines can ask; kept with its credentials."""
    if "_forerun_session" not in vars(fs):
        from botocore.session import Session

        fs._forerun_session = Session(**fs.kwargs)
    return fs._forerun_session


def _endpoint(fs: Any) -> str | None:
    """The endpoint that is given, by an option, a variable or a file; none is Amazon's own."""
    given = fs.client_kwargs.get("endpoint_url") or fs.endpoint_url
    if given:
        return str(given)
    from botocore.configprovider import ConfiguredEndpointProvider

    session = _session(fs)
    if session.get_config_variable("ignore_configured_endpoint_urls"):
        return None
    scoped = session.get_scoped_config()
    found = ConfiguredEndpointProvider(full_config=session.full_config, scoped_config=scoped, client_name="s3").provide()
    return str(found) if found else None


def _credentials(fs: Any) -> Any:
    """Credentials as botocore's client would have them."""
    if _has_client(fs):
        return fs.s3._request_signer._credentials
    given = [
        fs.client_kwargs.get(f"aws_{name}") or own
        for name, own in (("access_key_id", fs.key), ("secret_access_key", fs.secret), ("session_token", fs.token))
    ]
    if not any(given):
        return _session(fs).get_credentials()
    if not all(given[:2]):
        # Botocore refuses a part of them, with its own words.
        return fs.s3._request_signer._credentials
    from botocore.credentials import Credentials

    return Credentials(*given)


def _s3(fs: Any, path: str) -> Reached:
    _refuse(fs, "version_aware", "s3_additional_kwargs", "cache_regions")
    if "?versionId=" in path or path.startswith("arn:"):
        raise UnknownOptionError(path)
    known = {"region_name", "endpoint_url", "use_ssl"}
    keys = {"aws_access_key_id", "aws_secret_access_key", "aws_session_token"}
    for option in fs.client_kwargs.keys() - known - keys:
        raise UnknownOptionError(f"client_kwargs: {option}")
    for option in fs.config_kwargs.keys() - _HARMLESS:
        raise UnknownOptionError(f"config_kwargs: {option}")
    account = _account(fs)
    endpoint = account.endpoint
    is_of_amazon = endpoint.rstrip("/").endswith((".amazonaws.com", ".amazonaws.com.cn"))
    for option, value in account.options.items():
        is_path = option == "addressing_style" and (is_of_amazon or value != "virtual")
        if value and not is_path:
            raise UnknownOptionError(f"config_kwargs: s3: {option}")
    variables = {**_NO_FILES, "AWS_ENDPOINT_URL": endpoint}
    variables["AWS_REGION"] = "us-east-1" if account.region in (None, "aws-global") else account.region
    if fs.req_kw:
        variables["AWS_REQUEST_PAYER"] = "true"
    credentials = account.credentials
    if not fs.anon:
        # Others are none, or of a role or a machine, and renewed each hour.
        if type(credentials).__name__ not in ("Credentials", "AioCredentials"):
            raise UnknownOptionError("credentials that expire")
        variables["AWS_ACCESS_KEY_ID"] = credentials.access_key
        variables["AWS_SECRET_ACCESS_KEY"] = credentials.secret_key
        if credentials.token:
            variables["AWS_SESSION_TOKEN"] = credentials.token
    return Reached(f"s3://{path}", variables, knows_tags=True)


def unsigned(fs: AbstractFileSystem) -> AbstractFileSystem:
    """The same file system without signatures, if it is one of s3fs that has found no keys: it refuses to read so.

    Those of gcsfs and adlfs read without by themselves.
    """
    known: Any = fs
    if _name(fs) != "s3fs.core.S3FileSystem" or known.anon or known.asynchronous:
        return fs
    try:
        credentials = _credentials(known)
    except Exception:
        # The call that follows fails in the same way.
        return fs
    if credentials is not None:
        return fs
    return type(known)(*known.storage_args, **{**known.storage_options, "anon": True})


def _name(fs: AbstractFileSystem) -> str:
    return f"{type(fs).__module__}.{type(fs).__qualname__}"


# The endpoint of the engine's client, if none is given.
_GOOGLE = "https://storage.googleapis.com"

# Names of a search for credentials, as `token=` of gcsfs.
_SEARCHES = ("google_default", "cache", "cloud", "token", "browser")


def _gs(fs: Any, path: str) -> Reached:
    _refuse(fs, "requester_pays", "session_kwargs", "version_aware", "_use_client_cert")
    variables = {"HOME": os.devnull}
    # With that of STORAGE_EMULATOR_HOST.
    if (endpoint := fs._location.rstrip("/")) != _GOOGLE:
        variables["GOOGLE_BASE_URL"] = endpoint
    token = fs.credentials.token
    # None at the end of a search: the target reads without credentials, too.
    if fs.credentials.credentials is not None:
        if not isinstance(token, str) or token in _SEARCHES:
            raise UnknownOptionError("token")
        is_file = os.path.isfile(token)
        variables["GOOGLE_APPLICATION_CREDENTIALS" if is_file else "GOOGLE_BEARER_TOKEN"] = token
    return Reached(f"gs://{path}", variables)


# Parts of a connection string that are of no use to a reader of blobs.
_OF_OTHERS = {"fileendpoint", "queueendpoint", "tableendpoint", "blobsecondaryendpoint"}


def _az(fs: Any, path: str) -> Reached:
    # adlfs makes a credential of a service principal: it is named as it was given.
    _refuse(fs, "client_id", "credential", "request_session", "version_aware")
    if getattr(fs, "location_mode", None) not in (None, "primary"):
        raise UnknownOptionError("location_mode")
    name, key, sas_token, endpoint = fs.account_name, fs.account_key, fs.sas_token, None
    if host := getattr(fs, "account_host", None):
        endpoint = f"https://{host}"
    if fs.connection_string:
        # It stands for all others, as in adlfs.
        name, key, sas_token, endpoint = _connection(fs.connection_string)
    elif not (key or sas_token or fs.anon):
        raise UnknownOptionError("credentials of the environment")
    if not name:
        raise UnknownOptionError("account_name")
    variables = {"HOME": os.devnull, "AZURE_STORAGE_ACCOUNT_NAME": name}
    if endpoint:
        variables["AZURE_STORAGE_ENDPOINT"] = endpoint.rstrip("/")
    if key:
        variables["AZURE_STORAGE_ACCOUNT_KEY"] = key
    elif sas_token:
        variables["AZURE_STORAGE_SAS_TOKEN"] = sas_token
    return Reached(f"az://{path}", variables)


def _connection(string: str) -> tuple[str | None, str | None, str | None, str | None]:
    """Account, key, SAS token and endpoint of a connection string."""
    parts = {}
    for part in filter(None, string.split(";")):
        name, _, value = part.partition("=")
        parts[name.strip().lower()] = value
    known = ("accountname", "accountkey", "sharedaccesssignature", "blobendpoint", "endpointsuffix")
    for name in parts.keys() - {*known, "defaultendpointsprotocol"} - _OF_OTHERS:
        raise UnknownOptionError(f"connection_string: {name}")
    account, key, token, endpoint, suffix = (parts.get(name) for name in known)
    if not endpoint and account and suffix:
        endpoint = f"{parts.get('defaultendpointsprotocol') or 'https'}://{account}.blob.{suffix}"
    return account, key, token, endpoint


def _http(fs: Any, path: str) -> Reached:
    _refuse(fs, "client_kwargs", "kwargs", "encoded")
    if getattr(fs.get_client, "__module__", None) != "fsspec.implementations.http":
        raise UnknownOptionError("get_client")
    return Reached(path, {})


# Exactly these: a class made from one may read otherwise.
_TARGETS: dict[str, Callable[[Any, str], Reached]] = {
    "s3fs.core.S3FileSystem": _s3,
    "gcsfs.core.GCSFileSystem": _gs,
    "gcsfs.extended_gcsfs.ExtendedGcsFileSystem": _gs,
    "adlfs.spec.AzureBlobFileSystem": _az,
    "fsspec.implementations.http.HTTPFileSystem": _http,
}


def reached(fs: AbstractFileSystem, path: str) -> Reached | None:
    """How the engine reaches an object by itself; None if the target is not known here.

    Raises `UnknownOptionError` where an option of the target has no counterpart.
    """
    of = _TARGETS.get(_name(fs))
    if of is None or getattr(fs, "asynchronous", False):
        return None
    return of(fs, path)
