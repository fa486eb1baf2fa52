"""The shipped scenarios: three reference architectures, with the figures that their notes give."""

import json
import os

import plan

PLACE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../share/shoal/scenarios")
FIGURES = {
    "finetune-8.ini": {"size.write_bandwidth": 28e9, "size.usable": 28.8e12,
                       "checkpoint.size": 980e9, "checkpoint.stall": 35, "size.losses": 0},
    "pretrain-32.ini": {"size.write_bandwidth": 56e9, "size.usable": 57.6e12,
                        "checkpoint.size": 980e9, "checkpoint.stall": 17.5, "size.losses": 1},
    "production-128.ini": {"size.write_bandwidth": 128 * 3.5e9 * 16 / 18, "size.losses": 2,
                           "size.usable": 128 * 4e12 * 0.9 * 16 / 18,
                           "checkpoint.size": 5290 * 2 ** 30},
}
FIRST = {"finetune-8.ini": "BeeOND (BeeGFS for one job)", "pretrain-32.ini": "Lustre",
         "production-128.ini": "WEKA"}


def architectures(shoal, tally):
    for name, figures in FIGURES.items():
        result = json.loads(plan.call(shoal, ["--from", os.path.join(PLACE, name), "--json"]))
        first = {model["model"]: model["rows"][0] for model in result["models"]}
        for path, wanted in figures.items():
            model, output = path.split(".")
            figure = first[model][output]
            tally.check(figure["value"] is not None and plan.near(figure["value"], wanted, 1e-9),
                        f"{name}: {path} is {figure['text']}, not {wanted}")
        # The large ones lose no figure of the size and the cost model.
        for model in ("size", "cost", "checkpoint"):
            for output, figure in first[model].items():
                tally.check(figure["value"] is not None, f"{name}: {model}.{output}: {figure}")
        tally.check(first["checkpoint"]["size"]["value"] == first["size"]["checkpoint"]["value"],
                    f"{name}: the size model and the checkpoint model differ in the checkpoint")
        needed = first["metadata"]["targets_needed"]["value"]
        tally.check(needed == first["size"]["metadata_targets"]["value"],
                    f"{name}: the metadata model asks for {needed} targets")
        tally.check(first["cost"]["net"]["value"] > 0, f"{name}: it does not pay")
        tally.check(first["choose"]["system"]["value"] == FIRST[name],
                    f"{name}: first is {first['choose']['system']['value']}")
