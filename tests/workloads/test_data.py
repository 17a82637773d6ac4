"""Data sources: what they hold, and what is said where their files are absent."""

import numpy as np
import pytest
import torch

from workloads import Unsuitable, data
from workloads.data import cifar10, digits, photos, synthetic
from workloads.data.folder import data_folder


@pytest.mark.parametrize("source", ["synthetic", "digits"])
def test_images_have_the_size_asked_for(source):
    """Float32, three channels, ten classes."""
    samples = data.load(source, train=True, image_size=16)
    image, label = samples[0]
    assert (image.shape, image.dtype) == ((3, 16, 16), torch.float32)
    assert 0 <= int(label) < 10


def test_digits_are_split_without_overlap():
    """1,797 in all, about zero mean and unit variance."""
    train, test = (digits.images(train=flag, image_size=8) for flag in (True, False))
    assert len(train) + len(test) == 1797
    rows = {tuple(image.flatten().tolist()) for image in train.tensors[0]}
    assert not any(tuple(image.flatten().tolist()) in rows for image in test.tensors[0])
    assert abs(float(train.tensors[0].mean())) < 0.1
    assert abs(float(train.tensors[0].std()) - 1) < 0.1


def test_digit_tokens_end_with_their_label():
    """64 pixel levels, then 17 to 26."""
    tokens = digits.tokens(train=True)
    assert tokens.shape[1] == 65
    assert int(tokens[:, :64].max()) <= 16
    assert set(tokens[:, 64].tolist()) == set(range(17, 27))


def test_synthetic_data_is_the_same_every_time():
    """Seeded."""
    first = synthetic.images(train=True, image_size=4).tensors[0].clone()
    synthetic.images.cache_clear()
    assert torch.equal(first, synthetic.images(train=True, image_size=4).tensors[0])


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    """An empty data folder; caches are forgotten."""
    monkeypatch.setenv("PERFGATE_DATA", str(tmp_path / "data"))
    photos.images.cache_clear()
    yield tmp_path / "data"
    photos.images.cache_clear()


def test_photos_are_made_once_and_decoded(empty_folder, monkeypatch):
    """Real JPEG files of both photographs."""
    monkeypatch.setattr(photos, "COUNT", 8)
    samples = photos.images(train=True, image_size=32)
    image, label = samples[1]
    assert image.shape == (3, 32, 32)
    assert {int(samples[n][1]) for n in range(len(samples))} == {0, 1}
    files = list(photos.folder().glob("*.jpg"))
    assert len(files) == 8
    assert files[0].read_bytes()[:3] == b"\xff\xd8\xff"
    assert photos.folder() == photos.folder()
    assert not list(empty_folder.glob(".tmp-*"))
    assert torch.equal(image, samples[1][0])
    assert int(label) in {0, 1}


def test_a_folder_without_cifar10_says_how_to_get_it(empty_folder):
    """Nothing is downloaded unasked."""
    with pytest.raises(Unsuitable, match=r"cifar-10-batches-py.*PERFGATE_DOWNLOAD=1"):
        cifar10.images(train=True, image_size=32)


def test_cifar10_is_read_by_torchvision(tmp_path, monkeypatch):
    """From the folder given."""
    monkeypatch.setenv("PERFGATE_DATA", str(tmp_path))
    cifar10.images.cache_clear()

    class Fake:
        def __init__(self, root, *, train, transform, target_transform, download):
            assert (root, train, download) == (str(tmp_path), True, False)
            self.transform, self.target_transform = transform, target_transform

        def __getitem__(self, _):
            return self.transform(np.zeros((32, 32, 3), dtype=np.uint8)), self.target_transform(3)

    monkeypatch.setattr(cifar10.torchvision.datasets, "CIFAR10", Fake)
    image, label = cifar10.images(train=True, image_size=16)[0]
    assert (image.shape, image.dtype, int(label)) == ((3, 16, 16), torch.float32, 3)
    cifar10.images.cache_clear()


def test_without_a_home_the_temporary_folder_serves(tmp_path, monkeypatch):
    """A read-only or missing home is no reason to fail."""
    (tmp_path / "file").write_text("x", encoding="utf-8")
    monkeypatch.delenv("PERFGATE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert data_folder().name == "perfgate-data"
