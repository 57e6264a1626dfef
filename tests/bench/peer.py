#!/usr/bin/env python3
"""The peer of the benchmark: the same training step, or attention, in PyTorch.

    peer.py CONFIG [SECONDS]

prints one line of JSON: steps (or runs) a second at the best of a few settings.
CONFIG is layers,heads,d,L,B (each head as wide as the model) or attention,L.
What makes it fast, found by measuring: batches made by vectorised code, an
allocator that keeps its pages, on huge pages, OpenBLAS's own choice of kernel,
and one or two threads in OpenMP or OpenBLAS but never in both at once.
"""
import json
import os
import subprocess
import sys

SETTINGS = [  # threads of OpenMP, of OpenBLAS
    (1, 1),
    (2, 1),
    (1, 2),
]
MALLOC = (
    "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=4294967296:"
    "glibc.malloc.trim_threshold=17179869184:glibc.malloc.top_pad=67108864"
)


def environment(openmp, openblas):
    env = dict(os.environ)
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        env.pop(name, None)
    env["GLIBC_TUNABLES"] = MALLOC
    env["OMP_NUM_THREADS"] = str(openmp)
    env["OPENBLAS_NUM_THREADS"] = str(openblas)
    return env


def best_of_settings(config, seconds):
    best = None
    for openmp, openblas in SETTINGS:
        done = subprocess.run(
            [sys.executable, __file__, "--one", config, seconds],
            env=environment(openmp, openblas),
            stdout=subprocess.PIPE,
            check=False,
        )
        if done.returncode != 0:
            return None
        result = json.loads(done.stdout)
        result["settings"] = f"OpenMP {openmp}, OpenBLAS {openblas}"
        if best is None or result["rate"] > best["rate"]:
            best = result
    return best


def blas_name():
    """What the products really go to, as this process has it mapped."""
    try:
        with open("/proc/self/maps", encoding="ascii") as maps:
            text = maps.read()
    except OSError:
        return "unknown"
    for name in ("openblas", "mkl", "blis", "libblas"):
        if name in text:
            return name
    return "none"


def rate_of(step, seconds):
    """Calls a second: the median of five rounds after a warm-up."""
    import time

    for _ in range(3):
        step()
    rounds = []
    for _ in range(5):
        n, start = 0, time.perf_counter()
        while True:
            step()
            n += 1
            took = time.perf_counter() - start
            if took >= seconds:
                break
        rounds.append(n / took)
    return sorted(rounds)[2]


def training(torch, layers, heads, d, length, batch):
    """One step: draw a batch, forward, loss and largest error, backward, Adam."""
    width = heads * d
    shape = [(width, d), (width, d), (width, d), (d, width)]
    weights = [
        [torch.nn.Parameter(0.02 * torch.randn(s)) for s in shape]
        for _ in range(layers)
    ]
    adam = torch.optim.Adam(
        [w for layer in weights for w in layer], lr=1e-4, betas=(0.9, 0.95)
    )
    seen = torch.tril(torch.ones(length, length, dtype=torch.bool))
    position = torch.arange(length)
    word = (position > 0).float().view(1, length, 1)
    residual = layers > 1

    def sample():
        trigger = torch.randint(2, length, (batch, 1))
        at = (position == trigger).float().unsqueeze(2)
        noise = 2 * torch.rand(batch, length, d - 3) - 1
        x = torch.cat(
            [(1 - word).expand(batch, length, 1), at, noise * word, word - at], 2
        )
        upto = (position <= trigger).float().unsqueeze(1) * word.transpose(1, 2)
        y = at * (upto @ x / trigger.unsqueeze(2))
        return x, y + x if residual else y

    def split(x):
        return x.view(batch, length, heads, d).transpose(1, 2)

    def forward(x):
        for w_q, w_k, w_v, w_o in weights:
            q, k, v = (split(x @ w.t()) for w in (w_q, w_k, w_v))
            scores = (q @ k.transpose(2, 3)).masked_fill(~seen, float("-inf"))
            out = scores.softmax(3) @ v
            out = out.transpose(1, 2).reshape(batch, length, width) @ w_o.t()
            x = x + out if residual else out
        return x

    def step():
        x, y = sample()
        error = forward(x) - y
        adam.zero_grad(set_to_none=True)
        error.square().mean().backward()
        if error.detach().abs().max().item() > 0:  # the stop test
            adam.step()

    return step


def attention(torch, length, heads=8, d=64):
    q, k, v = (
        torch.randn(1, heads, length, d, requires_grad=True) for _ in range(3)
    )
    hidden = ~torch.tril(torch.ones(length, length, dtype=torch.bool))
    up = torch.randn(1, heads, length, d)

    def step():
        scores = (q @ k.transpose(2, 3)) * d**-0.5
        out = scores.masked_fill(hidden, float("-inf")).softmax(3) @ v
        out.backward(up)
        q.grad = k.grad = v.grad = None

    return step


def one(config, seconds):
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.manual_seed(0)
    parts = config.split(",")
    if parts[0] == "attention":
        step = attention(torch, int(parts[1]))
    else:
        step = training(torch, *map(int, parts))
    return {
        "rate": rate_of(step, seconds),
        "torch": torch.__version__,
        "blas": blas_name(),
    }


def main(arguments):
    if arguments and arguments[0] == "--one":
        print(json.dumps(one(arguments[1], float(arguments[2]))))
        return 0
    try:
        import torch  # noqa: F401
    except ImportError as error:
        print(json.dumps({"skipped": f"no PyTorch for {sys.executable}: {error}"}))
        return 0
    result = best_of_settings(arguments[0], arguments[1] if arguments[1:] else "1")
    print(json.dumps(result or {"skipped": f"it failed at {arguments[0]}"}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
