# ruff: noqa: N802
"""A stand-in for ``cuda.bindings.driver``: cards whose kernels the interpreter of PTX executes.

It has the functions that the engine calls, with the same arguments and results. Work of a stream is done when the
host waits for it, not before: an array that is freed too early is noticed.
"""

import collections
import ctypes
import enum
import itertools
import threading
import time

import numpy as np

from tests.support.ptx import Memory, Module


class CUresult(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_PTX = 218
    CUDA_ERROR_ILLEGAL_ADDRESS = 700
    CUDA_ERROR_LAUNCH_FAILED = 719


OK = CUresult.CUDA_SUCCESS


class CUdevice_attribute(enum.IntEnum):  # noqa: N801
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76


class _Card:
    def __init__(self, name, capability, multiprocessors, size):
        self.name, self.capability, self.multiprocessors = name, capability, multiprocessors
        self.memory, self.size = Memory(size), size
        self.lost = OK
        self.launches = 0


class StandIn:
    """The driver of some cards.

    Args:
      cards: The number of cards.
      capability: Their compute capability.
      multiprocessors: Of each card.
      memory: Bytes of each card.
      version: Of the driver.
      edit: Changes PTX before it is loaded, for negative controls.
      delay: Seconds that a launch takes at least.
    """

    CUdevice_attribute, CUresult = CUdevice_attribute, CUresult

    def __init__(
        self, cards=1, capability=(8, 0), multiprocessors=2, memory=1 << 24, version=13000, edit=None, delay=0
    ):
        self.cards = [_Card(f"Stand-in {n}", capability, multiprocessors, memory) for n in range(cards)]
        self.version, self.edit, self.delay = version, edit or (lambda text: text), delay
        self.calls: collections.Counter[str] = collections.Counter()
        self.failures: dict[tuple[str, int], CUresult] = {}  # (function, number of its call) -> error
        self.lose: dict[int, int] = {}  # card -> number of the launch in which it fails
        self.texts: list[str] = []
        self._here = threading.local()
        self._lock = threading.RLock()
        self._keep: dict[int, object] = {}
        self._handles = itertools.count(1)

    # What every function does first

    def _begin(self, function):
        with self._lock:
            self.calls[function] += 1
            failure = self.failures.get((function, self.calls[function]), OK)
        card = getattr(self._here, "card", None)
        return failure or (card.lost if card is not None else OK)

    def _handle(self, thing):
        with self._lock:
            handle = next(self._handles)
            self._keep[handle] = thing
            return handle

    def opened(self, kind):
        """The number of modules or streams that were made and not freed."""
        return sum(isinstance(thing, kind) for thing in self._keep.values())

    # The driver and its cards

    def cuInit(self, flags):
        return (self._begin("cuInit"),)

    def cuGetErrorName(self, error):
        return OK, CUresult(error).name.encode()

    def cuDriverGetVersion(self):
        return self._begin("cuDriverGetVersion"), self.version

    def cuDeviceGetCount(self):
        return self._begin("cuDeviceGetCount"), len(self.cards)

    def cuDeviceGet(self, ordinal):
        return self._begin("cuDeviceGet"), ordinal

    def cuDeviceGetName(self, length, dev):
        return self._begin("cuDeviceGetName"), self.cards[dev].name.encode().ljust(length, b"\0")

    def cuDeviceGetAttribute(self, attrib, dev):
        card = self.cards[dev]
        values = {16: card.multiprocessors, 75: card.capability[0], 76: card.capability[1]}
        return self._begin("cuDeviceGetAttribute"), values[int(attrib)]

    def cuDevicePrimaryCtxRetain(self, dev):
        return self._begin("cuDevicePrimaryCtxRetain"), dev

    def cuCtxSetCurrent(self, ctx):
        self._here.card = self.cards[ctx]
        return (self._begin("cuCtxSetCurrent"),)

    # Memory

    def cuMemGetInfo(self):
        card = self._here.card
        return self._begin("cuMemGetInfo"), card.size - sum(card.memory.taken.values()), card.size

    def cuMemAlloc(self, bytesize):
        if failure := self._begin("cuMemAlloc"):
            return failure, None
        with self._lock:
            address = self._here.card.memory.allocate(bytesize)
        return (OK, address) if address is not None else (CUresult.CUDA_ERROR_OUT_OF_MEMORY, None)

    def cuMemFree(self, dptr):
        if failure := self._begin("cuMemFree"):
            return (failure,)
        with self._lock:
            self._here.card.memory.release(dptr)
        return (OK,)

    def cuMemcpyHtoDAsync(self, dstDevice, srcHost, ByteCount, hStream):
        card = self._here.card

        def copy():
            _within(card.memory, dstDevice, ByteCount)[:] = _host(srcHost, ByteCount)
            return OK

        return self._queued("cuMemcpyHtoDAsync", hStream, copy)

    def cuMemcpyDtoHAsync(self, dstHost, srcDevice, ByteCount, hStream):
        card = self._here.card

        def copy():
            _host(dstHost, ByteCount)[:] = _within(card.memory, srcDevice, ByteCount)
            return OK

        return self._queued("cuMemcpyDtoHAsync", hStream, copy)

    # Kernels

    def cuModuleLoadData(self, image):
        if failure := self._begin("cuModuleLoadData"):
            return failure, None
        text = self.edit(ctypes.string_at(image).decode())
        self.texts.append(text)
        return OK, self._handle(Module(text, self._here.card.memory))

    def cuModuleUnload(self, hmod):
        if failure := self._begin("cuModuleUnload"):
            return (failure,)
        with self._lock:
            module = self._keep.pop(hmod)
            for address in module.symbols.values():
                self._here.card.memory.release(address)
            for handle in [h for h, thing in self._keep.items() if getattr(thing, "module", None) is module]:
                del self._keep[handle]
        return (OK,)

    def cuModuleGetFunction(self, hmod, name):
        if failure := self._begin("cuModuleGetFunction"):
            return failure, None
        return OK, self._handle(self._keep[hmod].kernels[name.decode()])

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, func, blockSize, dynamicSMemSize):
        assert self._keep[func].module.kernels
        return self._begin("cuOccupancyMaxActiveBlocksPerMultiprocessor"), 1

    def cuStreamCreate(self, Flags):
        if failure := self._begin("cuStreamCreate"):
            return failure, None
        return OK, self._handle(collections.deque())

    def cuStreamDestroy(self, hStream):
        if failure := self._begin("cuStreamDestroy"):
            return (failure,)
        assert not self._keep[hStream], "work of the stream is under way"
        del self._keep[hStream]
        return (OK,)

    def cuLaunchKernel(self, f, gx, gy, gz, bx, by, bz, sharedMemBytes, hStream, kernelParams, extra):
        card, kernel = self._here.card, self._keep[f]
        values, types = kernelParams
        assert len(values) == len(types) == len(kernel.parameters)
        assert (gy, gz, by, bz, sharedMemBytes, extra) == (1, 1, 1, 1, 0, 0)

        def run():
            card.launches += 1
            if self.lose.get(self.cards.index(card)) == card.launches:
                card.lost = CUresult.CUDA_ERROR_LAUNCH_FAILED
                return card.lost
            try:
                kernel.run(gx, bx, [int(v) for v in values])
            except IndexError:
                card.lost = CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
                return card.lost
            time.sleep(self.delay)
            return OK

        return self._queued("cuLaunchKernel", hStream, run)

    def _queued(self, function, stream, work):
        if failure := self._begin(function):
            return (failure,)
        self._keep[stream].append(work)
        return (OK,)

    def cuStreamSynchronize(self, hStream):
        failure = self._begin("cuStreamSynchronize")
        queue = self._keep[hStream]
        while queue and not failure:
            failure = queue.popleft()()
        if failure and failure != CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            self._here.card.lost = failure
        return (failure,)


def _host(address, size):
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def _within(memory, address, size):
    if not memory.allowed[address >> 3 : (address + size + 7) >> 3].all():
        raise IndexError("an address outside of the allocated memory")
    return memory.bytes[address : address + size]
