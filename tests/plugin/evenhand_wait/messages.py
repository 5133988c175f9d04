"""The sentences of the waiting audit. There is no German yet: a German report shows them in English, marked."""

from evenhand.messages import Catalogue
from evenhand_wait.metrics import METRICS

say = Catalogue(
    "wait",
    "evenhand_wait",
    {
        "waited": (
            "{where}: {group:group} waited {group_value:unit} days on average and {reference:group} "
            "{reference_value:unit}."
        ),
        "by": "By {grouping:name}",
        "everybody": "Everybody",
        "longest": (
            "{n:count} patient waited {days:number} days at most.",
            "{n:count} patients waited {days:number} days at most.",
        ),
        "missing_days": "missing days",
        "measured": "Waiting is measured in days, from the column {column:name}.",
        "long_waits": (
            "{n:count} patient waited longer than {days:set} days.",
            "{n:count} patients waited longer than {days:set} days.",
        ),
        "few_long": "{n:count} of them waited longer than {days:set} days",
        "also_long": "Longer than {days:set} days waited {n:count} of {group:group}.",
    },
    words={"metric": tuple(metric.title_in_sentence for metric in METRICS.values())},
)
