#!/usr/bin/env python3
"""Reference values of the random numbers of `shardwright init` (docs/reference/init.md).

Another implementation than src/checkpoint/random.c, in another language; it needs the package xxhash. Writes
values.tsv beside itself: lines

    bits    SEED NAME INDEX  64 bits in hexadecimal, and the normal number of them as a hexadecimal float
    normal  64 bits in hexadecimal, and the normal number of them: the edges and the far tails
    tensor  SEED NAME COUNT DTYPE DEVIATION  xxh3 of the bytes of so many elements

    python3 tests/data/random/make.py
"""
import math
import os
import statistics
import struct

import xxhash

MASK = 0xFFFFFFFF


def philox(counter, key):
    a, b, c, d = counter
    k, l = key
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (q >> 32) ^ b ^ k, q & MASK, (p >> 32) ^ d ^ l, p & MASK
        k, l = (k + 0x9E3779B9) & MASK, (l + 0xBB67AE85) & MASK
    return a, b, c, d


def split(x):
    return x & MASK, x >> 32


def bits_of(seed, name, index):
    block = philox(split(index // 2) + split(seed), split(xxhash.xxh3_64_intdigest(name.encode())))
    low, high = block[:2] if index % 2 == 0 else block[2:]
    return low | high << 32


def log(x):
    m, e = math.frexp(x)  # x = m 2^e, 1/2 <= m < 1
    m, e = 2 * m, e - 1
    if m > float.fromhex("0x1.6a09e667f3bcdp+0"):
        m, e = m / 2, e + 1
    s = (m - 1) / (m + 1)
    z = s * s
    total = 0.0
    for k in range(23, 1, -2):
        total = (total + 2.0 / k) * z
    high, low = float.fromhex("0x1.62e42fefa38p-1"), float.fromhex("0x1.ef35793c7673p-45")
    return e * high + (e * low + (2 * s + s * total))


def root(x):
    bits = struct.unpack("<Q", struct.pack("<d", x))[0]
    y = struct.unpack("<d", struct.pack("<Q", (bits >> 1) + (1023 << 51)))[0]
    for _ in range(4):
        y = 0.5 * (y + x / y)
    return y


def polynomial(coefficients, x):
    total = 0.0
    for c in coefficients:
        total = total * x + c
    return total


# Wichura's AS241, as its paper prints it: from the lowest power to the highest.
A = [3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
     4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3]
B = [1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4,
     3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3]
C = [1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
     1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4]
D = [1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9]
E = [6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
     2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7]
F = [1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15]


def normal(bits):
    p = ((bits >> 12) + 0.5) / 2.0**52
    q = p - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        x = polynomial(A[::-1], r) * q / polynomial(B[::-1], r)
    else:
        r = root(-log(min(p, 1 - p)))
        above, below, r = (C, D, r - 1.6) if r <= 5 else (E, F, r - 5.0)
        x = math.copysign(polynomial(above[::-1], r) / polynomial(below[::-1], r), q)
    assert math.isclose(x, statistics.NormalDist().inv_cdf(p), rel_tol=1e-13), (bits, x)
    return x


def narrow(value, dtype):
    single = struct.unpack("<f", struct.pack("<f", value))[0]
    if dtype == "F32":
        return struct.pack("<f", single)
    if dtype == "F16":
        return struct.pack("<e", single)
    whole = struct.unpack("<I", struct.pack("<f", single))[0]
    kept, lost = whole >> 16, whole & 0xFFFF
    return struct.pack("<H", kept + (lost > 0x8000 or (lost == 0x8000 and kept % 2 == 1)))


NAMES = ["lm_head.weight", "model.embed_tokens.weight", "model.layers.31.mlp.experts.127.down_proj.weight", "wte", ""]
INDICES = [0, 1, 2, 3, 4095, 4096, 2**32, 2**33 + 1, 2**63 + 12345, 2**64 - 1]


def main():
    lines = []
    for seed in (0, 1, 2**64 - 1):
        for name in NAMES:
            for index in INDICES:
                bits = bits_of(seed, name, index)
                lines.append(f"bits\t{seed}\t{name}\t{index}\t{bits:016x}\t{normal(bits).hex()}")
    edges = [0, 1 << 12, 2**62, 2**63 - 4096, 2**63, 2**64 - 1, 2**64 - 4096]
    edges += [int(p * 2**52) << 12 for p in (1e-14, 1e-12, 1.3e-11, 1.4e-11, 0.0749999, 0.0750001, 0.9249999, 0.9250001)]
    for bits in edges:
        lines.append(f"normal\t{bits:016x}\t{normal(bits).hex()}")
    for index in range(200_000):
        bits = bits_of(0, "tail", index)
        p = (bits >> 12) / 2.0**52
        if min(p, 1 - p) < 1e-4:
            lines.append(f"bits\t0\ttail\t{index}\t{bits:016x}\t{normal(bits).hex()}")
    for dtype in ("F32", "BF16", "F16"):
        for deviation in (0.02, 1.0, 3e-6):
            numbers = (normal(bits_of(7, "h.0.attn.c_attn.weight", i)) for i in range(5001))
            data = b"".join(narrow(deviation * x, dtype) for x in numbers)
            digest = xxhash.xxh3_64_intdigest(data)
            lines.append(f"tensor\t7\th.0.attn.c_attn.weight\t5001\t{dtype}\t{deviation!r}\t{digest:016x}")
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "values.tsv")
    with open(path, "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
