"""Load the instrument; its entry point bears the same name, or pytest would refuse the second registration."""

pytest_plugins = ["perfgate.plugin"]
