"""NVIDIA cards, driven through the CUDA driver.

All calls go through ``cuda.bindings.driver``, NVIDIA's own module, or through an object with the same functions. Every
function returns a tuple whose first entry is an error code.
"""

import ctypes
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxbandit.engine.gpu.errors import MAKE_ROOM, ON_CPUS, CardError, CardLostError, NoMemoryError
from jaxbandit.engine.native.processor import THREADS

OLDEST = (7, 0)  # oldest compute capability, that of the PTX
OLDEST_DRIVER = 12_000  # CUDA 12.0, which the oldest supported version of cuda-bindings needs
OUT_OF_MEMORY = 2


def bindings() -> Any:
    """Returns NVIDIA's module of the CUDA driver."""
    try:
        from cuda.bindings import driver  # pyright: ignore
    except ImportError as error:
        raise CardError(
            f"the CUDA driver cannot be called: {error}", "Install NVIDIA's bindings: pip install 'jaxbandit[cuda]'"
        ) from error
    return driver


def visible(api: Any) -> "list[Card]":
    """Returns all cards that the driver shows.

    Raises:
      CardError: There is no driver or no card, or one of them is too old.
    """
    try:
        code = api.cuInit(0)[0]
    except Exception as error:  # the bindings raise errors of several classes if they find no driver
        raise CardError(
            f"there is no CUDA driver on this machine ({str(error).rstrip('.')})",
            f"Install NVIDIA's driver, version 525 or later. {ON_CPUS}",
        ) from error
    if code:
        raise CardError(
            f"the CUDA driver did not start: {_name(api, code)}", f"`nvidia-smi` shows its state. {ON_CPUS}"
        )
    version = _first(api, "cuDriverGetVersion")
    if version < OLDEST_DRIVER:
        found, oldest = (f"{v // 1000}.{v % 1000 // 10}" for v in (version, OLDEST_DRIVER))
        raise CardError(
            f"the CUDA driver is for CUDA {found}, but jaxbandit needs {oldest} or later",
            f"Update NVIDIA's driver. {ON_CPUS}",
        )
    cards = [Card(api, number) for number in range(_first(api, "cuDeviceGetCount"))]
    if not cards:
        raise CardError("the CUDA driver shows no card", f"The variable CUDA_VISIBLE_DEVICES may hide it. {ON_CPUS}")
    usable = [card for card in cards if card.capability >= OLDEST]
    if not usable:
        found = ", ".join(f"{card.name} has {card.capability[0]}.{card.capability[1]}" for card in cards)
        raise CardError(
            f"no card is new enough: {found}, but compute capability {OLDEST[0]}.{OLDEST[1]} or later is needed",
            ON_CPUS,
        )
    return usable


def _first(api: Any, function: str, *arguments: Any) -> Any:
    code, *values = getattr(api, function)(*arguments)
    if code:
        raise CardError(
            f"{function} failed: {_name(api, code)}", f"`nvidia-smi` shows the state of the cards. {ON_CPUS}"
        )
    return values[0] if values else None


def _name(api: Any, code: Any) -> str:
    try:
        failed, name = api.cuGetErrorName(code)
        return f"{name.decode()} ({int(code)})" if not failed else str(int(code))
    except Exception:  # the driver is in no state to answer
        return str(int(code))


class Card:
    """One card, whose calls may come from any thread.

    Attributes:
      name: Its name, such as "NVIDIA A100-SXM4-40GB".
      capability: Its compute capability, such as (8, 0).
      lost: The failure after which the card cannot continue in this process; empty if there was none.
    """

    def __init__(self, api: Any, number: int):
        self._api, self.number, self.lost = api, number, ""
        self._device = _first(api, "cuDeviceGet", number)
        self.name = _first(api, "cuDeviceGetName", 100, self._device).split(b"\0")[0].decode()
        kinds = api.CUdevice_attribute
        self.capability = (
            self._attribute(kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            self._attribute(kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        )
        self.multiprocessors = self._attribute(kinds.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        self._context: Any = None
        self._lock = threading.Lock()

    def _attribute(self, kind: Any) -> int:
        return _first(self._api, "cuDeviceGetAttribute", kind, self._device)

    def call(self, function: str, *arguments: Any) -> Any:
        """Calls a function of the driver on this card; returns its result.

        Raises:
          NoMemoryError: The card has no memory left.
          CardLostError: Any other failure, after which the card is not used again.
        """
        if self.lost:
            raise CardLostError(self.lost)
        try:
            self._enter()
            return self._checked(function, *arguments)
        except NoMemoryError:
            raise
        except CardLostError as error:
            self.lost = self.lost or str(error)
            raise
        except Exception as error:  # an error of the bindings themselves
            self.lost = self.lost or f"{self.name} (card {self.number}) failed in {function}: {error}"
            raise CardLostError(self.lost) from error

    def _checked(self, function: str, *arguments: Any) -> Any:
        code, *values = getattr(self._api, function)(*arguments)
        if int(code) == OUT_OF_MEMORY:
            raise NoMemoryError(f"{self.name} (card {self.number}) has no memory left", MAKE_ROOM)
        if code:
            raise CardLostError(f"{self.name} (card {self.number}) failed in {function}: {_name(self._api, code)}")
        return values[0] if len(values) == 1 else tuple(values)

    def _enter(self) -> None:
        """Makes the card's context that of this thread."""
        with self._lock:
            if self._context is None:
                self._context = self._checked("cuDevicePrimaryCtxRetain", self._device)
        self._checked("cuCtxSetCurrent", self._context)

    def free_bytes(self) -> int:
        """Returns the free memory."""
        return int(self.call("cuMemGetInfo")[0])

    def load(self, ptx: str) -> "Module":
        """Returns compiled kernels; the driver compiles them for the card and keeps them in its own cache."""
        image = np.frombuffer(ptx.encode() + b"\0", np.uint8)
        return Module(self, self.call("cuModuleLoadData", image.ctypes.data))

    def stream(self) -> Any:
        """Returns a new stream, whose work waits for no other stream."""
        return self.call("cuStreamCreate", 1)  # CU_STREAM_NON_BLOCKING

    def end(self, stream: Any) -> None:
        """Destroys a stream."""
        self.call("cuStreamDestroy", stream)

    def allocate(self, size: int) -> int:
        """Returns the address of new memory."""
        return int(self.call("cuMemAlloc", max(size, 1)))

    def release(self, address: int) -> None:
        """Frees memory."""
        self.call("cuMemFree", address)

    def put(self, address: int, array: np.ndarray, stream: Any) -> None:
        """Copies an array to the card."""
        if array.nbytes:
            self.call("cuMemcpyHtoDAsync", address, array.ctypes.data, array.nbytes, stream)

    def get(self, array: np.ndarray, address: int, stream: Any) -> None:
        """Copies memory of the card into an array; the copy is complete after ``wait``."""
        if array.nbytes:
            self.call("cuMemcpyDtoHAsync", array.ctypes.data, address, array.nbytes, stream)

    def wait(self, stream: Any) -> None:
        """Waits until all work of a stream is done; other Python threads run meanwhile."""
        self.call("cuStreamSynchronize", stream)


class Module:
    """The kernels of a program on a card."""

    def __init__(self, card: Card, handle: Any):
        self._card, self._handle = card, handle
        self._functions: dict[str, Any] = {}

    def function(self, name: str) -> Any:
        """Returns a kernel by name."""
        if name not in self._functions:
            self._functions[name] = self._card.call("cuModuleGetFunction", self._handle, name.encode())
        return self._functions[name]

    def resident(self, name: str) -> int:
        """Returns the number of threads of a kernel that the whole card holds at a time."""
        blocks = self._card.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", self.function(name), THREADS, 0)
        return max(int(blocks), 1) * THREADS * self._card.multiprocessors

    def close(self) -> None:
        """Frees the memory of the kernels, which cannot be launched any more."""
        self._card.call("cuModuleUnload", self._handle)

    def launch(self, name: str, threads: int, stream: Any, arguments: Sequence[int]) -> None:
        """Starts a kernel with at least so many threads; every argument is an address or a number of 64 bits."""
        grid = -(-threads // THREADS)
        given = tuple(arguments), (ctypes.c_int64,) * len(arguments)
        self._card.call("cuLaunchKernel", self.function(name), grid, 1, 1, THREADS, 1, 1, 0, stream, given, 0)
