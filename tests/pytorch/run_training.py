"""Trains a case of make_run_trajectories.py with PyTorch alone: torch.nn, torch.optim, lr_scheduler, nn.utils."""
import fnmatch

import numpy
import torch
from run_cases import DEFAULTS
from run_dropout import PhiloxDropout
from run_networks import NETWORKS, NORMALISED
from torch import nn
from torch.nn import functional
from torch.optim import lr_scheduler

NORMS = (nn.modules.batchnorm._BatchNorm, nn.LayerNorm, nn.GroupNorm)
OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW,
              "rmsprop": torch.optim.RMSprop, "adagrad": torch.optim.Adagrad}


def name_and_options(entry):
    """`adam`, or `{adam: {lr: 0.1}}`."""
    return (entry, {}) if isinstance(entry, str) else next(iter(entry.items()))


def loss_sum(settings, outputs, targets):
    """The sum over the rows, and what divides it."""
    kind, options = name_and_options(settings["loss"])
    if kind == "cross_entropy":
        ignored = options.get("ignore_index", -100)
        weights = options.get("class_weights")
        weights = torch.ones(outputs.shape[1]) if weights is None else torch.tensor(weights)
        weights = weights.to(outputs)
        counted = targets[targets != ignored]
        return functional.cross_entropy(outputs, targets, weights, ignore_index=ignored, reduction="sum",
                                        label_smoothing=options.get("label_smoothing", 0.0)), weights[counted].sum()
    targets = targets.to(outputs)
    if kind == "bce_with_logits":
        weights = options.get("positive_weights")
        weights = None if weights is None else torch.tensor(weights).to(outputs)
        total = functional.binary_cross_entropy_with_logits(outputs, targets, pos_weight=weights, reduction="sum")
    elif kind == "huber":
        total = functional.huber_loss(outputs, targets, reduction="sum", delta=options.get("delta", 1.0))
    else:
        total = {"mse": functional.mse_loss, "l1": functional.l1_loss}[kind](outputs, targets, reduction="sum")
    return total, torch.tensor(float(outputs.numel()))


def mean_loss(settings, outputs, targets):
    """PyTorch's own mean, for steps of one pass."""
    kind, options = name_and_options(settings["loss"])
    options = {{"class_weights": "weight", "positive_weights": "pos_weight"}.get(key, key):
               torch.tensor(value).to(outputs) if isinstance(value, list) else value for key, value in options.items()}
    module = {"cross_entropy": nn.CrossEntropyLoss, "mse": nn.MSELoss, "l1": nn.L1Loss, "huber": nn.HuberLoss,
              "bce_with_logits": nn.BCEWithLogitsLoss}[kind](**options)
    return module(outputs, targets if kind == "cross_entropy" else targets.to(outputs))


def metrics_of(settings, outputs, targets):
    found = {}
    if outputs.dim() > 2:  # [rows, classes, ...]: each place counts
        outputs = outputs.movedim(1, -1).flatten(0, -2)
        targets = targets.flatten()
    ignored = name_and_options(settings["loss"])[1].get("ignore_index", -100)
    for metric in settings.get("metrics", []):
        if metric == "mae":
            found[metric] = (outputs - targets).abs().mean().item()
            continue
        counted = targets != ignored
        scores, labels = outputs[counted], targets[counted]
        predictions = scores.argmax(1)
        if metric == "accuracy":
            found[metric] = (predictions == labels).double().mean().item()
        elif metric == "top5":
            found[metric] = (scores.topk(5, 1).indices == labels[:, None]).any(1).double().mean().item()
        elif metric == "macro_f1":
            found[metric] = macro_f1(predictions, labels)
    return found


def macro_f1(predictions, labels):
    scores = []
    for c in torch.cat([predictions, labels]).unique():
        hits = ((predictions == c) & (labels == c)).sum().item()
        scores.append(2 * hits / ((predictions == c).sum() + (labels == c).sum()).item())
    return sum(scores) / len(scores)


def make_optimizer(settings, net):
    """One parameter group per parameter, with what the first rule that matches it says."""
    kind, options = name_and_options(settings["optimizer"])
    norms = {id(parameter) for module in net.modules() if isinstance(module, NORMS)
             for parameter in module.parameters()}
    groups = []
    for name, parameter in net.named_parameters():
        group = {"params": [parameter], "lr": options["lr"]}
        for rule in settings.get("parameters", []):
            matched = {"norms": id(parameter) in norms, "biases": name.split(".")[-1] == "bias"}.get(
                rule["match"], fnmatch.fnmatchcase(name, rule["match"]))
            if matched:
                parameter.requires_grad_(not rule.get("frozen", False))
                group["lr"] *= rule.get("lr_factor", 1.0)
                if "weight_decay" in rule:
                    group["weight_decay"] = rule["weight_decay"]
                break
        if parameter.requires_grad:
            groups.append(group)
    return OPTIMIZERS[kind](groups, **options)


def make_schedule(settings, optimizer, total_steps):
    """The schedule, and whether it counts epochs. None: constant."""
    kind, options = name_and_options(settings.get("schedule", "constant"))
    options = dict(options)
    per_epoch = options.pop("per", "step") == "epoch"
    warmup, start = options.pop("warmup_steps", 0), options.pop("warmup_start", 0.0)
    total = options.pop("total", settings["epochs"] if per_epoch else total_steps - warmup)
    schedules = {
        "constant": lambda: lr_scheduler.ConstantLR(optimizer, 1.0, 1),
        "step": lambda: lr_scheduler.StepLR(optimizer, **options),
        "multi_step": lambda: lr_scheduler.MultiStepLR(optimizer, **options),
        "exponential": lambda: lr_scheduler.ExponentialLR(optimizer, **options),
        "polynomial": lambda: lr_scheduler.PolynomialLR(optimizer, total, **options),
        "cosine": lambda: lr_scheduler.CosineAnnealingLR(optimizer, total, options.get("min_lr", 0.0)),
        "cosine_restarts": lambda: lr_scheduler.CosineAnnealingWarmRestarts(
            optimizer, options["period"], options.get("period_factor", 1), options.get("min_lr", 0.0)),
        "one_cycle": lambda: one_cycle(optimizer, total, options),
        "plateau": lambda: lr_scheduler.ReduceLROnPlateau(optimizer, **options),
    }
    if warmup == 0:
        return schedules[kind](), per_epoch
    rising = lr_scheduler.LinearLR(optimizer, start, 1.0, warmup)
    return lr_scheduler.SequentialLR(optimizer, [rising, schedules[kind]()], [warmup]), per_epoch


def one_cycle(optimizer, total, options):
    options = dict(options)
    highest = options.pop("max_lr", optimizer.param_groups[0]["lr"])
    strategy = options.pop("anneal", "cos")
    return lr_scheduler.OneCycleLR(optimizer, highest, total, anneal_strategy=strategy, **options)


def nudge(net, seed):
    """Every parameter one rounding away."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in net.parameters():
            sign = torch.randint(0, 2, parameter.shape, generator=generator).to(parameter) * 2 - 1
            parameter.mul_(1 + sign * torch.finfo(parameter.dtype).eps)


class Training:
    """A run. After run(), `series` has {quantity: numbers} and weights() the state dict."""

    def __init__(self, case, arrays, init, dtype, nudge_seed=None):
        network, settings = case
        self.settings = {**DEFAULTS, **settings}
        data, _, build = NETWORKS[network]
        self.net = build()
        self.net.load_state_dict(init)
        self.net.to(dtype)
        if nudge_seed is not None:
            nudge(self.net, nudge_seed)
        self.x, self.y = self.tensors(data, arrays[data], "train", dtype)
        self.x_test, self.y_test = self.tensors(data, arrays[data], "test", dtype)
        self.grains = self.settings.get("grains", 1)
        names = [name for name, _ in self.net.named_buffers()]
        self.buffers = [{name: self.net.get_buffer(name).clone() for name in names} for _ in range(self.grains)]
        self.grain_rows = [0] * self.grains
        self.series = {"loss": [], "gradient_norm": [], "lr": [], "train_loss": []}

    @staticmethod
    def tensors(data, arrays, part, dtype):
        x, y = torch.from_numpy(arrays[f"x_{part}"]), torch.from_numpy(arrays[f"y_{part}"])
        if data in NORMALISED:
            trained = arrays["x_train"].astype(numpy.float64)  # torch.std is off in the 15th digit
            others = tuple(axis for axis in range(trained.ndim) if axis != 1)  # per channel or column
            mean, deviation = trained.mean(others, keepdims=True), trained.std(others, keepdims=True)
            x = (x.to(dtype) - torch.from_numpy(mean).to(dtype)) / torch.from_numpy(deviation).to(dtype)
        else:
            x = x.to(dtype) if x.is_floating_point() else x.long()
        return x, y if y.is_floating_point() else y.long()

    def passes(self, step):
        """(micro-batch, grain, first row in the batch, row indices) of one optimizer step."""
        batch, rows = self.settings["batch"], len(self.x)
        first = step % self.steps_per_epoch * self.settings.get("accumulate", 1)
        last = min(first + self.settings.get("accumulate", 1), self.batches)
        for b in range(first, last):
            count = min(batch, rows - b * batch)
            for g in range(self.grains):
                begin, end = g * count // self.grains, (g + 1) * count // self.grains
                if end > begin:
                    yield b - first, g, begin, slice(b * batch + begin, b * batch + end)

    def forward(self, step, micro_batch, grain, first_row, rows):
        for module in self.net.modules():
            if isinstance(module, PhiloxDropout):
                module.set_position(self.settings["seed"], step, micro_batch, first_row)
        self.set_buffers(self.buffers[grain])
        outputs = self.net(self.x[rows])
        self.buffers[grain] = {name: buffer.clone() for name, buffer in self.net.named_buffers()}
        self.grain_rows[grain] += rows.stop - rows.start
        return outputs

    def set_buffers(self, values):
        for name, buffer in self.net.named_buffers():
            buffer.copy_(values[name])

    def average_buffers(self):
        """Weighted by the rows that each grain saw; counters: the greatest."""
        total = sum(self.grain_rows)
        averages = {}
        for name, first in self.buffers[0].items():
            values = [buffers[name] for buffers in self.buffers]
            if first.is_floating_point():
                averages[name] = sum(value * (rows / total) for value, rows in zip(values, self.grain_rows))
            else:
                averages[name] = torch.stack(values).amax(0)
        self.set_buffers(averages)

    def gradient(self, step):
        """Gradient of the mean loss over all passes of a step. Returns the loss's sum and what divides it."""
        passes = list(self.passes(step))
        if len(passes) == 1:
            rows = passes[0][-1]
            outputs = self.forward(step, *passes[0])
            loss = mean_loss(self.settings, outputs, self.y[rows])
            loss.backward()
            denominator = loss_sum(self.settings, outputs, self.y[rows])[1].item()
            return loss.item() * denominator, denominator
        total = denominator = 0.0
        for one in passes:
            pass_sum, pass_denominator = loss_sum(self.settings, self.forward(step, *one), self.y[one[-1]])
            pass_sum.backward()
            total, denominator = total + pass_sum.item(), denominator + pass_denominator.item()
        for parameter in self.net.parameters():
            if parameter.grad is not None:
                parameter.grad /= denominator
        return total, denominator

    def run(self):
        settings = self.settings
        batches = len(self.x) / settings["batch"]
        self.batches = int(batches) if settings.get("drop_last") else int(numpy.ceil(batches))
        self.steps_per_epoch = int(numpy.ceil(self.batches / settings.get("accumulate", 1)))
        total_steps = min(settings.get("steps", 10**9), settings["epochs"] * self.steps_per_epoch)
        optimizer = make_optimizer(settings, self.net)
        schedule, per_epoch = make_schedule(settings, optimizer, total_steps)
        is_plateau = isinstance(schedule, lr_scheduler.ReduceLROnPlateau)
        epoch_sum = epoch_denominator = 0.0
        for step in range(total_steps):
            optimizer.zero_grad()
            total, denominator = self.gradient(step)
            self.series["loss"].append(total / denominator)
            self.series["lr"].append(float(optimizer.param_groups[0]["lr"]))
            self.clip()
            optimizer.step()
            epoch_sum, epoch_denominator = epoch_sum + total, epoch_denominator + denominator
            ends_epoch = (step + 1) % self.steps_per_epoch == 0 or step + 1 == total_steps
            if not is_plateau and (ends_epoch or not per_epoch) and step + 1 < total_steps:
                schedule.step()
            if ends_epoch:
                self.series["train_loss"].append(epoch_sum / epoch_denominator)
                epoch_sum = epoch_denominator = 0.0
                loss = self.evaluate()
                if is_plateau:
                    schedule.step(loss)
        return self

    def clip(self):
        clip = self.settings.get("clip", {})
        parameters = [parameter for parameter in self.net.parameters() if parameter.requires_grad]
        norm = nn.utils.clip_grad_norm_(parameters, clip.get("norm", float("inf")))
        self.series["gradient_norm"].append(norm.item())
        if "value" in clip:
            nn.utils.clip_grad_value_(parameters, clip["value"])

    @torch.no_grad()
    def evaluate(self):
        self.average_buffers()
        self.net.eval()
        outputs = self.net(self.x_test)
        loss = mean_loss(self.settings, outputs, self.y_test).item()
        for name, value in ({"loss": loss} | metrics_of(self.settings, outputs, self.y_test)).items():
            self.series.setdefault(f"test.{name}", []).append(value)
        self.net.train()
        return loss

    def weights(self):
        return {name: value.detach().clone() for name, value in self.net.state_dict().items()}
