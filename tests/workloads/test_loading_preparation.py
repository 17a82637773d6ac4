"""Stages of the images that are left to the device: the same inputs, fewer bytes on their way."""

import pytest
import torch
import torchvision
from torch.utils.data import Dataset

from perfgate.measure.check import check_same_result
from workloads import MLP, NotInEffect, Transformer, Unsuitable
from workloads.data import cifar10, photos
from workloads.data.stored import flipped, normalised
from workloads.optimizations import DeviceAugmentation, GpuDecode, PinMemory, Workers
from workloads.optimizations.gpu_decode import joined

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
PHOTOS = MLP(batch_size=4, width=8, image_size=16, data="photos")


@pytest.fixture(autouse=True)
def few_photos(tmp_path, monkeypatch):
    """Twelve training photographs of their own folder."""
    monkeypatch.setenv("PERFGATE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(photos, "COUNT", 16)
    photos.images.cache_clear()
    yield
    photos.images.cache_clear()


def checked(variant, plain):
    """Build both, compare their results, and return the comparison and the variant's proof."""
    try:
        variant.build(CPU)
        plain.build(CPU)
        same = check_same_result(variant.outcome(), plain.reference_outcome(variant), variant.tolerance)
        return same, variant.proof({})
    finally:
        variant.release()
        plain.release()


@pytest.mark.parametrize("make", [PHOTOS.loading_step, PHOTOS.epoch_step], ids=["load", "epoch"])
@pytest.mark.parametrize("technique", [DeviceAugmentation(), GpuDecode()], ids=str)
@pytest.mark.parametrize("stack", [(), (Workers(1),)], ids=["main", "worker"])
def test_the_same_result_from_fewer_bytes(make, technique, stack):
    """In the main process and through a worker; a decoder's list works on a CPU, too."""
    _, proof = checked(make(technique, *stack), make())
    assert "of inputs" in proof[str(technique)]


def test_a_quarter_of_the_bytes():
    """12 images of 3x16x16, one byte instead of four a value, and an index of 8."""
    _, proof = checked(PHOTOS.loading_step(DeviceAugmentation()), PHOTOS.loading_step())
    assert proof["device-augmentation"] == "the loader delivers 9,312 bytes for 36,864 of inputs"


def test_the_batch_differs_by_rounding_only():
    """Flipped and normalised as sample by sample."""
    images = photos.images(train=True, image_size=16)
    pixels = torch.stack([images.pixels(index)[0] for index in range(6)])
    expected = torch.stack([images[index][0] for index in range(6)])
    assert pixels.dtype == torch.uint8
    assert torch.allclose(images.finished(pixels, torch.arange(6)), expected, atol=1e-6)


def test_only_chosen_images_are_mirrored():
    """Along the width."""
    batch = torch.arange(4.0).view(2, 1, 1, 2)
    assert flipped(batch, torch.tensor([False, True])).flatten().tolist() == [0, 1, 3, 2]


def test_levels_are_normalised_per_channel():
    """0 and 255 are 0 and 1 before."""
    pixels = torch.tensor([[0, 255]] * 3, dtype=torch.uint8).view(1, 3, 1, 2)
    found = normalised(pixels, (0.5, 0.0, 1.0), (0.25, 1.0, 0.5))
    assert torch.allclose(found.flatten(), torch.tensor([-2.0, 2.0, 0.0, 1.0, -2.0, 0.0]), atol=1e-6)


def test_photographs_of_unequal_size_are_resized_one_by_one():
    """A folder of one's own has them."""
    images = photos.images(train=True, image_size=16)
    decoded = [torch.full((3, side, side), side, dtype=torch.uint8) for side in (20, 40)]
    assert images.resized(decoded)[:, 0, 0, 0].tolist() == [20, 40]
    assert images.resized(decoded).shape == (2, 3, 16, 16)


@pytest.mark.parametrize("image_size", [32, 16])
def test_cifar10_is_finished_on_the_device(image_size):
    """Normalised and resized as float32, as sample by sample."""
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(256, (4, 3, 32, 32), generator=generator, dtype=torch.uint8)
    images = cifar10.Cifar10(
        [(torchvision.tv_tensors.Image(each), torch.tensor(n)) for n, each in enumerate(pixels)], image_size
    )
    assert torch.equal(torch.stack([images.pixels(index)[0] for index in range(4)]), pixels)
    expected = torch.stack([images[index][0] for index in range(4)])
    assert torch.allclose(images.finished(pixels, torch.arange(4)), expected, atol=1e-5)


def test_files_of_unequal_length_are_joined():
    """One tensor of bytes, and how to take it apart again."""
    files = [((torch.tensor([1, 2], dtype=torch.uint8), 5), 0), ((torch.tensor([3], dtype=torch.uint8), 6), 1)]
    (content, lengths, indices), labels = joined(files)
    assert [content.tolist(), lengths.tolist(), indices.tolist(), labels.tolist()] == [
        [1, 2, 3],
        [2, 1],
        [5, 6],
        [0, 1],
    ]


@pytest.mark.parametrize(
    ("technique", "workload", "device", "said"),
    [
        (DeviceAugmentation(), MLP(), CPU, "mlp on synthetic has no images stored as uint8: use data photos"),
        (DeviceAugmentation(), MLP(data="digits"), CPU, "mlp on digits has no images stored as uint8"),
        (DeviceAugmentation(), Transformer(), CPU, "transformer on synthetic has no images"),
        (GpuDecode(), PHOTOS, CPU, "use device-augmentation on a CPU"),
        (GpuDecode(), MLP(data="digits"), GPU, "has no JPEG files: use data photos"),
    ],
)
def test_unsuitable_says_why(technique, workload, device, said):
    """And what to use instead."""
    assert said in technique.unsuitable(workload, device)


def test_suitable_photographs():
    """For either, on its device."""
    assert DeviceAugmentation().unsuitable(PHOTOS, CPU) is None
    assert GpuDecode().unsuitable(PHOTOS, GPU) is None


def test_one_of_them_at_a_time():
    """Both decide where images are prepared."""
    assert "choose one" in GpuDecode().clash(DeviceAugmentation())
    assert DeviceAugmentation().clash(PinMemory()) is None


def test_floats_on_their_way_are_noticed():
    """The technique was applied, and something took its place."""
    step = PHOTOS.loading_step(DeviceAugmentation())
    step.build(CPU)
    step.parts.arrive = lambda parts, loaded: loaded[0].float()
    step.loader.dataset.samples = [((torch.zeros(3, 16, 16), 0), 0)] * 12
    with pytest.raises(NotInEffect, match=r"the loader delivers torch.float32, torch.int64, expected uint8"):
        step.proof({})


def test_bytes_that_never_become_floats_are_noticed():
    """The model would take them for numbers of 0 to 255."""
    step = PHOTOS.loading_step(DeviceAugmentation())
    step.build(CPU)
    step.parts.arrive = lambda parts, loaded: loaded[0]
    with pytest.raises(NotInEffect, match=r"torch\.uint8 arrived, expected float32"):
        step.proof({})


def test_decoding_elsewhere_is_noticed():
    """The GPU was asked for."""
    step = PHOTOS.loading_step(GpuDecode())
    step.build(CPU)
    step.facts()
    step.parts.device = GPU
    step.facts = dict
    step.run = lambda: None
    with pytest.raises(NotInEffect, match="images were decoded on cpu"):
        step.proof({})


def test_a_torchvision_without_nvjpeg(monkeypatch):
    """Found when the step is built."""

    def decode(*_, **__):
        raise RuntimeError("decode_jpegs_cuda: torchvision not compiled with nvJPEG support")

    monkeypatch.setattr(torchvision.io, "decode_jpeg", decode)
    with pytest.raises(Unsuitable, match="nvJPEG cannot be used here: use device-augmentation"):
        PHOTOS.loading_step(GpuDecode()).build(CPU)


def test_a_file_that_is_broken_is_not_taken_for_it(monkeypatch):
    """Its own error comes through."""

    def decode(*_, **__):
        raise RuntimeError("Not a JPEG file")

    monkeypatch.setattr(torchvision.io, "decode_jpeg", decode)
    with pytest.raises(RuntimeError, match="Not a JPEG"):
        PHOTOS.loading_step(GpuDecode()).build(CPU)


def test_a_step_without_stored_images_is_refused():
    """In its parts, too, for training asks no step."""
    parts = MLP().parts(CPU, training=True)
    assert isinstance(parts.dataset(train=True), Dataset)
    with pytest.raises(Unsuitable, match="needs a step with a loader over StoredImages"):
        DeviceAugmentation().apply(parts)
