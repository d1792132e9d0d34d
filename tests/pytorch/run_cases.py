"""The cases of make_run_trajectories.py: networks and the settings they are trained with, as the job file has them."""
from run_networks import CLASSES, NETWORKS

CLASS_METRICS = ["accuracy", "top5", "macro_f1"]
DEFAULTS = {
    "loss": "cross_entropy",
    "optimizer": {"sgd": {"lr": 0.1, "momentum": 0.9}},
    "batch": 12,  # of 44 rows: the last batch of an epoch is short
    "epochs": 5,
    "order": "sequential",
    "log_every": 1,
    "seed": 5,
    "checkpoint": {"every_minutes": 0},
}
WEIGHTS = [0.5, 1.0, 1.5, 2.0, 0.25, 1.0, 3.0]  # by class
WEIGHTED = {"cross_entropy": {"class_weights": WEIGHTS}}
ALL_OPTIONS = {"cross_entropy": {"label_smoothing": 0.2, "class_weights": WEIGHTS, "ignore_index": 3}}
MOVED_ADAM = {"lr": 0.02, "betas": [0.7, 0.9], "eps": 1e-4, "amsgrad": True}


def layers():
    """One case per network."""
    cases = {}
    for name in NETWORKS:
        if name in ("regression", "binary"):
            continue
        metrics = ["accuracy", "macro_f1"] if name in ("dense", "lenet5", "resnet8") else CLASS_METRICS
        cases[f"layer-{name}"] = (name, {"metrics": metrics})
    cases["layer-resnet8"][1]["optimizer"] = {"adamw": {"lr": 0.003}}
    cases["layer-lenet5"][1]["optimizer"] = {"adam": {"lr": 0.002}}
    return cases


def losses():
    def of_classes(loss, **settings):
        return "mlp", {"loss": loss, "metrics": CLASS_METRICS} | settings

    return {
        "loss-label_smoothing": of_classes({"cross_entropy": {"label_smoothing": 0.1}}),
        "loss-class_weights": of_classes(WEIGHTED),
        "loss-ignore_index": of_classes({"cross_entropy": {"ignore_index": 3}}),
        "loss-all_options": of_classes(ALL_OPTIONS),
        "loss-all_options_grains": of_classes(ALL_OPTIONS, grains=4),
        "loss-mse": ("regression", {"loss": "mse", "metrics": ["mae"]}),
        "loss-l1": ("regression", {"loss": "l1", "metrics": ["mae"]}),
        "loss-huber": ("regression", {"loss": {"huber": {"delta": 0.4}}, "metrics": ["mae"]}),
        "loss-bce": ("binary", {"loss": "bce_with_logits", "metrics": ["mae"]}),
        "loss-bce_weights": ("binary", {"loss": {"bce_with_logits": {"positive_weights": [0.5, 1.0, 4.0]}}}),
    }


def optimizers():
    settings = {
        "sgd": {"sgd": {"lr": 0.2}},
        "sgd_dampening": {"sgd": {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.05}},
        "sgd_nesterov": {"sgd": {"lr": 0.1, "momentum": 0.8, "nesterov": True, "weight_decay": 0.05}},
        "adam": {"adam": {"lr": 0.02}},
        "adam_amsgrad": {"adam": MOVED_ADAM | {"weight_decay": 0.05}},
        "adamw": {"adamw": {"lr": 0.02}},
        "adamw_amsgrad": {"adamw": MOVED_ADAM | {"weight_decay": 0.2}},
        "rmsprop": {"rmsprop": {"lr": 0.005, "eps": 1e-5, "weight_decay": 0.05}},
        "rmsprop_centered": {"rmsprop": {"lr": 0.005, "alpha": 0.9, "eps": 1e-3, "momentum": 0.7, "centered": True}},
        "adagrad": {"adagrad": {"lr": 0.05}},
        "adagrad_options": {"adagrad": {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.2, "eps": 1e-4,
                                        "weight_decay": 0.05}},
    }
    return {f"optimizer-{name}": ("mlp", {"optimizer": optimizer}) for name, optimizer in settings.items()}


def schedules():
    adam = {"adam": {"lr": 0.02}}
    settings = {
        "step": {"step": {"step_size": 6, "gamma": 0.5}},
        "step_per_epoch": {"step": {"step_size": 2, "gamma": 0.5, "per": "epoch"}},
        "multi_step": {"multi_step": {"milestones": [4, 9, 10], "gamma": 0.4}},
        "exponential": {"exponential": {"gamma": 0.9}},
        "polynomial": {"polynomial": {"power": 2.0, "total": 15}},
        "cosine": "cosine",
        "cosine_rising_again": {"cosine": {"total": 8, "min_lr": 0.02}},
        "cosine_per_epoch": {"cosine": {"min_lr": 0.01, "per": "epoch"}},
        "cosine_restarts": {"cosine_restarts": {"period": 3, "period_factor": 2, "min_lr": 0.01}},
        "one_cycle": {"one_cycle": {"max_lr": 0.3}},
        "plateau": {"plateau": {"patience": 0, "threshold": 0.5, "factor": 0.5}},
        "warmup": {"constant": {"warmup_steps": 8, "warmup_start": 0.1}},
        "warmup_cosine": {"cosine": {"warmup_steps": 5, "warmup_start": 0.2, "min_lr": 0.01}},
        "warmup_step": {"step": {"step_size": 5, "gamma": 0.5, "warmup_steps": 4, "warmup_start": 0.25}},
    }
    cases = {f"schedule-{name}": ("mlp", {"schedule": schedule}) for name, schedule in settings.items()}
    one_cycle = {"pct_start": 0.4, "anneal": "linear", "three_phase": True, "base_momentum": 0.7, "max_momentum": 0.9}
    cases["schedule-one_cycle_adam"] = ("mlp", {"optimizer": adam, "schedule": {"one_cycle": one_cycle}})
    fixed = {"one_cycle": {"cycle_momentum": False, "div_factor": 10.0, "final_div_factor": 50.0}}
    cases["schedule-one_cycle_fixed_momentum"] = ("mlp", {"schedule": fixed})
    return cases


def clips_and_groups():
    decaying = {"adamw": {"lr": 0.01, "weight_decay": 0.3}}
    no_decay = [{"match": "norms", "weight_decay": 0.0}, {"match": "biases", "weight_decay": 0.0, "lr_factor": 2.0}]
    frozen = [{"match": "0.*", "frozen": True}]
    return {
        "clip-norm": ("mlp", {"clip": {"norm": 0.4}}),
        "clip-value": ("mlp", {"clip": {"value": 0.05}}),
        "clip-both": ("mlp", {"clip": {"norm": 0.4, "value": 0.08}, "grains": 2}),
        "groups-no_decay": ("layer_norm", {"optimizer": decaying, "parameters": no_decay}),
        "groups-frozen": ("mlp", {"optimizer": decaying, "parameters": frozen}),
        "groups-frozen_last": ("batch_norm2d", {"optimizer": {"sgd": {"lr": 0.1, "weight_decay": 0.1}},
                                                "parameters": [{"match": "4.*", "frozen": True},
                                                               {"match": "norms", "lr_factor": 0.5}]}),
    }


def batches():
    return {
        "accumulate-plain": ("mlp", {"batch": 4, "accumulate": 3}),
        "accumulate-weights": ("mlp", {"batch": 4, "accumulate": 3, "loss": WEIGHTED}),
        "accumulate-dropout": ("dropout", {"batch": 6, "accumulate": 2, "grains": 2}),
        "accumulate-batch_norm": ("batch_norm2d", {"batch": 6, "accumulate": 2, "grains": 2}),
        "grains-2": ("mlp", {"grains": 2}),
        "grains-4": ("mlp", {"grains": 4, "optimizer": {"adam": {"lr": 0.02}}}),
        "grains-2_batch_norm": ("batch_norm2d", {"grains": 2}),
        "grains-4_batch_norm": ("batch_norm2d", {"grains": 4, "optimizer": {"adam": {"lr": 0.01}}}),
        "grains-4_residual_network": ("resnet8", {"grains": 4}),
        "grains-empty": ("mlp", {"batch": 14, "grains": 4}),  # 2 rows in the last batch: two grains without rows
        "grains-empty_batch_norm": ("batch_norm2d", {"batch": 14, "grains": 4}),
        "grains-dropout": ("dropout_conv", {"grains": 4}),
        "grains-gaps": ("dense", {"grains": 4, "metrics": ["accuracy", "macro_f1"]}),
        "accumulate-clip": ("mlp", {"batch": 4, "accumulate": 3, "clip": {"norm": 0.4}}),
        "drop_last": ("mlp", {"drop_last": True, "epochs": 7, "steps": 20, "schedule": "cosine"}),
    }


CASES = layers() | losses() | optimizers() | schedules() | clips_and_groups() | batches()
assert CLASSES == len(WEIGHTS)
