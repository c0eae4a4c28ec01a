"""Models of transformers with random weights on torch.device("rdna"): inference and ten training steps, operator by operator and compiled, beside the CPU's."""

import copy

import pytest

from harness import WHOLE

pytestmark = pytest.mark.xdist_group("torch_device")  # what one has compiled the others use

STEPS = 10
# Heads of 16: three kernels of attention with heads of 32 take lavapipe 37 s, and minutes with larger ones.
SIZES = dict(hidden_size=32, intermediate_size=64, num_attention_heads=2)
# A second layer calls the same operators, but is compiled once more.
LAYERS = {"eager": 2, "compiled": 1}


def bert(torch, layers):
    """The second sentence has padding."""
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(**SIZES, num_hidden_layers=layers, vocab_size=96, max_position_embeddings=32, hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    ids = torch.randint(0, 96, (2, 24))
    mask = torch.ones_like(ids)
    mask[1, 17:] = 0
    return BertForMaskedLM(config), dict(input_ids=ids, attention_mask=mask, labels=ids.masked_fill(mask == 0, -100))


def llama(torch, layers):
    """Two heads for one of keys and values."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(**SIZES, num_hidden_layers=layers, vocab_size=96, num_key_value_heads=1, max_position_embeddings=32, use_cache=False)
    ids = torch.randint(0, 96, (2, 24))
    return LlamaForCausalLM(config), dict(input_ids=ids, labels=ids)


def vit(torch, layers):
    """Patches of ViT-B/16's size."""
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(**SIZES, num_hidden_layers=layers, image_size=64, patch_size=16, num_labels=10, hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    return ViTForImageClassification(config), dict(pixel_values=torch.randn(2, 3, 64, 64), labels=torch.tensor([3, 8]))


MODELS = {"bert": bert, "llama": llama, "vit": vit}
# Each model goes one way: what the other one has, test_torch_operators.py and test_torch_training.py have. GRETA_TEST_WHOLE=1: both.
WAYS = [(model, way) for model in MODELS for way in LAYERS] if WHOLE else [("bert", "compiled"), ("llama", "eager"), ("vit", "eager")]


def inference_and_training(torch, model, inputs, device, dtype, is_compiled):
    """The logits before training, the loss of each step, and the parameters after the last."""
    model = copy.deepcopy(model).to(device, dtype)
    inputs = {name: one.to(device, dtype if one.is_floating_point() else None) for name, one in inputs.items()}
    call = torch.compile(model) if is_compiled else model
    model.eval()
    with torch.no_grad():
        logits = call(**inputs).logits.cpu()
    model.train()
    # Adam makes steps of gradients that are zero but for rounding.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = call(**inputs).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().cpu())
    return {"logits": logits, "losses": torch.stack(losses)} | {name: one.detach().cpu() for name, one in model.named_parameters()}


def distances(torch, results, exact, before):
    """How far each result is from float64's, as a share of its size; of a parameter as a share of how far training moved it, or of all of them together where that is more."""
    most = max((exact[name] - one).norm() for name, one in before.items())
    found = {}
    for name, one in exact.items():
        size = max((one - before[name]).norm(), 1e-3 * most) if name in before else one.norm()
        found[name] = ((results[name].double() - one).norm() / size).item()
    return found


@pytest.mark.timeout(1800)  # the first call of each operator compiles it
@pytest.mark.parametrize("name, way", WAYS)
def test_models_of_transformers(rdna, name, way):
    """The device is as near to float64 as the CPU in float32 is: its distance is at most eight times as large, which other orders of sums need."""
    torch = rdna
    pytest.importorskip("transformers")
    torch.manual_seed(0)
    model, inputs = MODELS[name](torch, LAYERS[way])
    torch._dynamo.reset()
    results = inference_and_training(torch, model, inputs, "rdna", torch.float32, way == "compiled")
    assert not torch.rdna.fallbacks()
    exact = inference_and_training(torch, model, inputs, "cpu", torch.float64, False)
    near = inference_and_training(torch, model, inputs, "cpu", torch.float32, False)
    assert exact["losses"][-1] < 0.9 * exact["losses"][0]
    before = {name: one.detach().double() for name, one in model.named_parameters()}
    ours, theirs = (distances(torch, one, exact, before) for one in (results, near))
    worst = {name: (ours[name], theirs[name]) for name in ours if not ours[name] <= 8 * max(theirs[name], torch.finfo(torch.float32).eps)}
    assert not worst, worst
