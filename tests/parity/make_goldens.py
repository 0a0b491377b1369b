#!/usr/bin/env python3
"""Tiny checkpoints and what Hugging Face transformers computes with them; see README.md beside this file.

    python3 tests/parity/make_goldens.py [--only PATTERN]   writes tests/parity/data/
    python3 tests/parity/make_goldens.py --load DIR [--ids 5,6,7]
                                                            loads a folder that the project saved
"""
import argparse
import fnmatch
import json
import os
import re
import shutil

import torch
import transformers
from safetensors.torch import load_file, save_file
from torch.overrides import TorchFunctionMode
from transformers import AutoConfig, AutoModelForCausalLM

from cases import CASES

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
BATCH, LENGTH = 2, 11
PROMPT, NEW = 5, 12
FIRST_ID = 3  # padding, begin and end are not used as tokens
SMALLEST_GAP = 0.02  # of a choice of experts or of a next token, in standard deviations of its scores


# ---- weights ----


def exact(tensor):
    """Rounded to what BF16 holds."""
    return tensor.to(torch.bfloat16).to(torch.float32)


def fan_in(module, name, shape):
    if type(module).__name__ == "Conv1D" or (len(shape) == 3 and "Experts" in type(module).__name__):
        return shape[-2]
    return shape[-1]


def random_values(module, name, old, generator):
    """Values of one tensor: norms around their identity, matrices such that a product keeps its size."""
    normal = torch.randn(old.shape, generator=generator)
    uniform = 2 * torch.rand(old.shape, generator=generator) - 1
    if "Norm" in type(module).__name__ and name == "weight":
        return old.float().mean().round() + 0.2 * uniform
    if name == "e_score_correction_bias":
        return 0.1 * (uniform + 1)
    if name == "sinks" or isinstance(module, torch.nn.Embedding):
        return normal
    if old.dim() == 1 or "bias" in name:
        return 0.2 * uniform
    return normal / fan_in(module, name, old.shape) ** 0.5


def fill(model, generator):
    seen = set()
    for module in model.modules():
        own = list(module.named_parameters(recurse=False))
        own += [(n, b) for n, b in module.named_buffers(recurse=False) if n == "e_score_correction_bias"]
        for name, tensor in own:
            if tensor.data_ptr() not in seen:
                seen.add(tensor.data_ptr())
                tensor.data.copy_(exact(random_values(module, name, tensor, generator)))


def level_logits(model, ids):
    """Scale the head until the logits spread by about 1."""
    head = model.get_output_embeddings()
    for _ in range(4):
        with torch.no_grad():
            spread = model(ids).logits.std().item()
        if 0.7 < spread < 1.4:
            return
        head.weight.data.copy_(exact(head.weight.data / spread))
        if head.bias is not None:
            head.bias.data.copy_(exact(head.bias.data / spread))


# ---- what must not hang by a hair ----


class Choices(TorchFunctionMode):
    """Records each topk: the smallest gap between the last chosen and the first left out, and the choices.

    Where scores are probabilities, those of left-out groups are 0: a chosen score of 0 counts as no gap.
    """

    def __init__(self, by_probability):
        super().__init__()
        self.by_probability = by_probability
        self.gap = float("inf")
        self.chosen = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if getattr(function, "__name__", "") == "topk":
            self.record(args[0].detach().float(), result[1].detach())
        return result

    def record(self, scores, chosen):
        self.chosen.append(chosen.sort(-1).values)
        ordered = scores.sort(-1, descending=True).values
        k = chosen.shape[-1]
        if k == scores.shape[-1]:
            return
        last, left_out = ordered[..., k - 1], ordered[..., k]
        gap = ((last - left_out) / scores.std(-1)).min().item()
        if self.by_probability and last.min() <= 0:
            gap = 0.0
        self.gap = min(self.gap, gap)

    def same_as(self, other):
        return all(torch.equal(a, b) for a, b in zip(self.chosen, other.chosen))


def greedy(model, ids):
    """The most likely next tokens, all computed anew for each, and the smallest gap to the second."""
    sequence, gap = ids[:1, :PROMPT], float("inf")
    for _ in range(NEW):
        with torch.no_grad():
            last = model(sequence, use_cache=False).logits[0, -1]
        best = last.topk(2)
        gap = min(gap, ((best.values[0] - best.values[1]) / last.std()).item())
        sequence = torch.cat([sequence, best.indices[:1].view(1, 1)], dim=1)
    return sequence[0, PROMPT:], gap


# ---- the peer's numbers ----


def cross_entropy(logits, labels):
    """Mean over the valid labels, each compared with the logits one position before it."""
    flat = logits[:, :-1].reshape(-1, logits.shape[-1])
    return torch.nn.functional.cross_entropy(flat, labels[:, 1:].reshape(-1), ignore_index=-100)


def scale_scores(model):
    """DeepSeek's modeling file multiplies the scale by mscale squared when mscale_all_dim is given."""
    scaling = model.config.rope_scaling
    mscale = 0.1 * scaling["mscale_all_dim"] * torch.log(torch.tensor(scaling["factor"])).item() + 1.0
    for layer in model.model.layers:
        layer.self_attn.scaling *= mscale * mscale


def load(folder, case, dtype):
    model, info = AutoModelForCausalLM.from_pretrained(
        folder, torch_dtype=dtype, attn_implementation=case.get("attention", "eager"),
        output_loading_info=True)
    wrong = [k for k in ("missing_keys", "unexpected_keys", "mismatched_keys") if info[k]]
    assert not wrong, {k: info[k] for k in wrong}
    if case.get("mscale"):
        scale_scores(model)
    return model.eval()


def evaluate(model, case, ids, labels):
    with Choices(by_probability=case["type"] != "gpt_oss") as choices:
        logits = model(ids, use_cache=False).logits.float()
    return logits, cross_entropy(logits.double(), labels), choices


# ---- one case ----


def make_inputs(vocab, generator):
    ids = torch.randint(FIRST_ID, vocab, (BATCH, LENGTH), generator=generator)
    labels = ids.clone()
    labels[0, 3] = labels[1, 1] = labels[1, LENGTH - 1] = -100
    return ids, labels


def make_model(case, seed):
    config = AutoConfig.for_model(case["type"], **case["config"])
    generator = torch.Generator().manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, attn_implementation=case.get("attention", "eager"))
    fill(model, generator)
    if case.get("mscale"):
        scale_scores(model)
    ids, labels = make_inputs(config.vocab_size, generator)
    level_logits(model.eval(), ids)
    return model, ids, labels


def save(model, folder):
    """As save_pretrained writes it: parameters in BF16, buffers of routers in F32 as published."""
    for parameter in model.parameters():
        parameter.data = parameter.data.to(torch.bfloat16)
    model.config.torch_dtype = torch.bfloat16
    model.save_pretrained(folder)
    generation = os.path.join(folder, "generation_config.json")
    if os.path.exists(generation):
        os.remove(generation)


def measure(case, seed, folder):
    """The checkpoint into `folder`; what the peer makes of it as tensors, and facts for the report. None when
    experts are chosen by a hair."""
    model, ids, labels = make_model(case, seed)
    with torch.no_grad():
        if evaluate(model, case, ids, labels)[2].gap < SMALLEST_GAP:
            return None
    save(model, folder)
    model = load(folder, case, torch.float32)
    logits, loss, choices = evaluate(model, case, ids, labels)
    cross_entropy(logits, labels).backward()
    continuation, token_gap = greedy(model, ids)
    with torch.no_grad():
        short = load(folder, case, torch.bfloat16)
        short_logits, short_loss, short_choices = evaluate(short, case, ids, labels)
    golden = {
        "input_ids": ids.int(), "labels": labels.int(), "greedy": continuation.int(),
        "logits": logits.detach(), "loss": loss.detach().view(1).double(),
        "logits_bf16": short_logits, "loss_bf16": short_loss.view(1).double(),
    }
    for name, parameter in model.named_parameters():
        # An expert that no token went to has none.
        golden["grad." + name] = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    facts = {
        "spread": logits.std().item(), "gap": choices.gap, "token_gap": token_gap,
        "distance": (short_logits - logits).abs().max().item(),
        "same_choices": choices.same_as(short_choices), "seed": seed,
    }
    return golden, facts


def is_clear(facts):
    return facts["gap"] > SMALLEST_GAP and facts["token_gap"] > SMALLEST_GAP and facts["same_choices"]


# ---- forms of published files ----


def renamed(name, case):
    old, new = case["rename"]
    return new + name[len(old):] if name.startswith(old) else name


INTERNLM2 = [
    (r"model\.embed_tokens\.", "model.tok_embeddings."),
    (r"lm_head\.", "output."),
    (r"self_attn\.o_proj\.", "attention.wo."),
    (r"mlp\.gate_proj\.", "feed_forward.w1."),
    (r"mlp\.up_proj\.", "feed_forward.w3."),
    (r"mlp\.down_proj\.", "feed_forward.w2."),
    (r"input_layernorm\.", "attention_norm."),
    (r"post_attention_layernorm\.", "ffn_norm."),
]


def internlm2_group(q, k, v, groups):
    """Rows group by group: the queries of a key/value head, its key, its value."""
    parts = [t.view(groups, t.shape[0] // groups, *t.shape[1:]) for t in (q, k, v)]
    return torch.cat(parts, dim=1).flatten(0, 1).contiguous()


def internlm2_names(tensors, groups):
    out = {}
    for name, tensor in tensors.items():
        if ".k_proj." in name or ".v_proj." in name:
            continue
        if ".q_proj." in name:
            k, v = (tensors[name.replace("q_proj", other)] for other in ("k_proj", "v_proj"))
            tensor = internlm2_group(tensor, k, v, groups)
            name = name.replace("self_attn.q_proj", "attention.wqkv")
        for pattern, replacement in INTERNLM2:
            name = re.sub(pattern, replacement, name)
        out[name] = tensor
    return out


def add_masks(tensors, positions):
    mask = torch.tril(torch.ones(positions, positions)).view(1, 1, positions, positions)
    layers = {name.split(".")[1] for name in tensors if name.startswith("h.")}
    for layer in layers:
        tensors["h.%s.attn.bias" % layer] = mask.clone()


def publish_config(case, path):
    """Returns the config as save_pretrained wrote it."""
    with open(path) as file:
        written = json.load(file)
    config = {k: v for k, v in written.items() if k not in case.get("omit", [])}
    if case.get("regroup") == "internlm2":
        config.update(architectures=["InternLM2ForCausalLM"], model_type="internlm2",
                      bias=config.pop("attention_bias"))
        del config["mlp_bias"]
    with open(path, "w") as file:
        json.dump(config, file, indent=2, sort_keys=True)
        file.write("\n")
    return written


def publish(case, golden, folder):
    """Turn the folder and the golden's names into the form that published checkpoints have."""
    config = publish_config(case, os.path.join(folder, "config.json"))
    path = os.path.join(folder, "model.safetensors")
    weights = load_file(path)
    grads = {k[len("grad."):]: golden.pop(k) for k in list(golden) if k.startswith("grad.")}
    if "rename" in case:
        weights, grads = ({renamed(k, case): v for k, v in t.items()} for t in (weights, grads))
    if case.get("regroup") == "internlm2":
        weights, grads = (internlm2_names(t, config["num_key_value_heads"]) for t in (weights, grads))
    if "masks" in case:
        add_masks(weights, case["masks"])
    for name, source in case.get("copies", {}).items():
        weights[name] = weights[source].clone()
    golden.update({"grad." + k: v for k, v in grads.items()})
    save_file(weights, path, metadata={"format": "pt"})


def make_case(name, case):
    folder = os.path.join(DATA, name)
    for seed in range(1, 400):
        shutil.rmtree(folder, ignore_errors=True)
        found = measure(case, seed, folder)
        if found and is_clear(found[1]):
            break
    golden, facts = found
    assert is_clear(facts), (name, facts)
    publish(case, golden, folder)
    numbers = folder + ".safetensors"  # beside the folder, or it would be one of the model's own files
    save_file({k: v.contiguous() for k, v in golden.items()}, numbers)
    size = sum(os.path.getsize(f) for f in [numbers] + [os.path.join(folder, f) for f in os.listdir(folder)])
    print("| %s | %d | %d | %.2f | %s | %.3f | %.1e | %.1e |" % (
        name, seed, size, facts["spread"], "-" if facts["gap"] == float("inf") else "%.3f" % facts["gap"],
        facts["token_gap"], facts["distance"], abs(golden["loss"] - golden["loss_bf16"]).item()), flush=True)


# ---- training ----


def start_values(generator):
    return {"a": torch.randn(5, 7, generator=generator), "b": torch.randn(11, generator=generator),
            "c": torch.randn(2, 3, 4, generator=generator)}


def adamw(params):
    return torch.optim.AdamW(params, lr=1e-2, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)


def sgd(momentum):
    return lambda params: torch.optim.SGD(params, lr=1e-1, momentum=momentum, weight_decay=0.1)


def optimizer_run(make, clip, out, prefix):
    """20 steps with given gradients: a parameter before, its gradients, the parameter after each step."""
    generator = torch.Generator().manual_seed(20)
    params = {k: torch.nn.Parameter(v) for k, v in start_values(generator).items()}
    optimizer = make(params.values())
    out.update({"%s.%s.before" % (prefix, k): p.detach().clone() for k, p in params.items()})
    grads, after, norms = {k: [] for k in params}, {k: [] for k in params}, []
    for step in range(20):
        for key, p in params.items():
            p.grad = torch.randn(p.shape, generator=generator) * 0.1 * (1 + step % 5)
            grads[key].append(p.grad.clone())
        if clip:
            norms.append(torch.nn.utils.clip_grad_norm_(params.values(), clip))
        optimizer.step()
        for key, p in params.items():
            after[key].append(p.detach().clone())
    for key in params:
        out["%s.%s.grads" % (prefix, key)] = torch.stack(grads[key])
        out["%s.%s.after" % (prefix, key)] = torch.stack(after[key])
    if clip:
        out["%s.norms" % prefix] = torch.stack(norms)


def schedule(make):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1e-2)
    scheduler = make(optimizer, num_warmup_steps=5, num_training_steps=30)
    rates = []
    for _ in range(30):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return torch.tensor(rates, dtype=torch.float64)


def make_training():
    for name, make in {"adamw": adamw, "sgd": sgd(0), "sgd_momentum": sgd(0.9)}.items():
        out = {}
        optimizer_run(make, None, out, name)
        optimizer_run(make, 1.5, out, "clipped")
        save_file(out, os.path.join(DATA, name + ".safetensors"))
    save_file({"cosine": schedule(transformers.get_cosine_schedule_with_warmup),
               "linear": schedule(transformers.get_linear_schedule_with_warmup)},
              os.path.join(DATA, "schedules.safetensors"))


# ---- commands ----


def load_saved(folder, ids):
    model = load(folder, {"type": ""}, torch.float32)
    ids = torch.tensor([ids])
    with torch.no_grad():
        loss = cross_entropy(model(ids, use_cache=False).logits.double(), ids)
    print("%s: %d parameters, loss %.9f" % (folder, sum(p.numel() for p in model.parameters()), loss.item()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="*", metavar="PATTERN",
                        help="cases whose names match; training: optimizers and schedules")
    parser.add_argument("--load", metavar="DIR", help="load this folder and print its loss")
    parser.add_argument("--ids", default="5,6,7,8,9,10,11,12", help="tokens for --load")
    args = parser.parse_args()
    # All values are ours, and not every class can set its own.
    transformers.PreTrainedModel.initialize_weights = lambda model: None
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    if args.load:
        load_saved(args.load, [int(i) for i in args.ids.split(",")])
        return
    os.makedirs(DATA, exist_ok=True)
    print("| case | seed | bytes | spread of logits | smallest routing gap | smallest token gap "
          "| logits bf16 - f32 | loss bf16 - f32 |\n|---|---|---|---|---|---|---|---|")
    for name in fnmatch.filter(CASES, args.only):
        make_case(name, CASES[name])
    if fnmatch.fnmatch("training", args.only):
        make_training()


if __name__ == "__main__":
    main()
