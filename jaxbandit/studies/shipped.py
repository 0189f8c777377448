"""The studies that come with the package, which commands find by name: ``jaxbandit run quickstart``."""

import pathlib

from jaxbandit.checks import nearest, suggest

_PACKAGE = pathlib.Path(__file__).parents[1]
_FOLDERS = (_PACKAGE / "experiments", _PACKAGE.parent / "experiments")  # of an installed wheel, of the repository


def shipped() -> dict[str, pathlib.Path]:
    """Returns the shipped study files by name."""
    folder = next((folder for folder in _FOLDERS if (folder / "quickstart.toml").is_file()), None)
    return {} if folder is None else {path.stem: path for path in sorted(folder.glob("*.toml"))}


def study_path(path: pathlib.Path) -> pathlib.Path:
    """Returns the path of a study file; if there is no such file, that of the shipped study with this name."""
    if path.exists():
        return path
    known = shipped()
    name = path.stem if path.suffix == ".toml" else path.name
    if path.parent == pathlib.Path() and name.lower() in known:  # their names are in lower case
        return known[name.lower()]
    files = sorted(file.name for file in path.parent.glob("*.toml")) if path.suffix else []
    if path.parent != pathlib.Path() or path.suffix == ".toml":
        near = nearest(path.name, files)
        remedy = f"did you mean {near!r}? Or write one" if near else "give the path of a study file, or write one"
        raise ValueError(f"{path} does not exist; {remedy} with: jaxbandit init")
    raise ValueError(f"there is no file and no shipped study {name!r}; {suggest(name, [*files, *known])}")
