"""Registration of engines."""

ENGINES = {}


def register(name=None):
    def put(cls):
        ENGINES[name or cls.__name__] = cls
        return cls

    return put
