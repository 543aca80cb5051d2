"""A second server of S3: moto's, which checks signatures' form, lists and versions in ways of its own."""

import errno
import random

import pytest

import forerun

SIZE = 3_000_001


@pytest.fixture
def bucket(monkeypatch):
    """A bucket on loopback, whose keys the environment has."""
    server = pytest.importorskip("moto.server")
    boto3 = pytest.importorskip("boto3")
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    running.start()
    host, port = running.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
    client.create_bucket(Bucket="bucket")
    yield client
    running.stop()


def put(bucket, seed):
    print(f"seed {seed}")
    content = random.Random(seed).randbytes(SIZE)
    bucket.put_object(Bucket="bucket", Key="a folder/key+1", Body=content)
    return content


def test_an_object_is_read_whole_and_in_ranges(bucket, engine):
    content = put(bucket, 1)
    with forerun.open("s3://bucket/a folder/key+1", engine=engine) as file:
        assert file.read() == content
        assert file.pread(100, SIZE - 50) == content[-50:]


def test_a_replaced_and_a_deleted_object_are_errors(bucket):
    content = put(bucket, 1)
    small = forerun.Engine(memory=1 << 20)
    with forerun.open("s3://bucket/a folder/key+1", engine=small) as file:
        assert file.pread(10, 0) == content[:10]
        put(bucket, 2)
        with pytest.raises(OSError) as raised:
            file.pread(10, SIZE - 10)
        assert raised.value.errno == errno.ESTALE
    bucket.delete_object(Bucket="bucket", Key="a folder/key+1")
    with pytest.raises(FileNotFoundError):
        forerun.open("s3://bucket/a folder/key+1", engine=small)
