"""The wheel petsc-gpucsr; share/wheel.sh first copies the library into the module"""
import os

from setuptools import Distribution, setup

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70
    from wheel.bdist_wheel import bdist_wheel


class Wheel(bdist_wheel):
    """For this platform and any Python 3"""

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


class Binary(Distribution):
    def has_ext_modules(self):
        return True


setup(
    name="petsc-gpucsr",
    version=os.environ["GPUCSR_VERSION"],
    description="Sparse matrices, vectors and solvers on NVIDIA GPUs for the PETSc you have",
    packages=["gpucsr"],
    package_data={"gpucsr": ["lib/*.so"]},
    python_requires=">=3.8",
    license="BSD-2-Clause",
    distclass=Binary,
    cmdclass={"bdist_wheel": Wheel},
)
