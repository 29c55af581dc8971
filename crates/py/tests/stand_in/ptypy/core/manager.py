"""Names of the models of scans."""


class Full:
    pass


class Vanilla:
    pass


class BlockVanilla:
    pass


class BlockFull:
    pass


class GradFull:
    pass


class BlockGradFull:
    pass
