"""The document is sound, and every example in it fits its schema:  examples.py openapi.json"""

import json
import sys

from jsonschema import Draft202012Validator, FormatChecker
from openapi_spec_validator import validate

document = json.load(open(sys.argv[1]))
validate(document)
checked, wrong = 0, []
for path, item in document["paths"].items():
    for method, operation in item.items():
        parts = {"body": operation.get("requestBody", {})}
        parts |= {status: answer for status, answer in operation["responses"].items()}
        for part, value in parts.items():
            for kind, media in value.get("content", {}).items():
                if "example" not in media:
                    continue
                schema = media["schema"] | {"components": document["components"]}
                validator = Draft202012Validator(schema, format_checker=FormatChecker())
                for error in validator.iter_errors(media["example"]):
                    wrong.append(f"{method.upper()} {path} {part} {kind}: {error.json_path}: {error.message}")
                checked += 1
if wrong:
    sys.exit("\n".join(wrong))
print(f"examples: {checked} fit their schemas")
