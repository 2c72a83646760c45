#!/bin/bash
#
# A Debian package of what is built, for the distribution's PETSc: BUILD/deb/libpetscgpucsr_VERSION_ARCH.deb
#
#   BUILD=build PETSC=PETSc share/deb.sh VERSION     (make deb)
#
# The package depends on the PETSc that the library was built against. The library lies in the multiarch folder; a link of the same name lies in PETSc's own
# folder, so that programs name it without a path of this system: -dll_append '${PETSC_LIB_DIR}/libpetscgpucsr.so'.
set -e
MAKEFLAGS=$(sed -E 's/ -j[0-9]*| --jobserver-auth=[^ ]*//g' <<<"$MAKEFLAGS") # that of the make that runs this
cd "$(dirname "${BASH_SOURCE[0]}")/.."
BUILD=${BUILD:-build} PETSC=${PETSC:-PETSc} version=$1
for tool in dpkg-deb dpkg-shlibdeps dpkg-architecture; do
  command -v $tool >/dev/null || { echo "deb: $tool is not there: apt-get install dpkg-dev" >&2 && exit 1; }
done
[ -f "$BUILD/lib/libpetscgpucsr.so" ] || { echo "deb: $BUILD/lib/libpetscgpucsr.so is not there: make builds it" >&2 && exit 1; }
petscdir=$(pkg-config --variable=libdir "$PETSC")
ours=$(dpkg -S "$(realpath "$petscdir"/libpetsc*.so | head -n 1)" 2>/dev/null | head -n 1) || ours=
[ -n "$ours" ] || { echo "deb: the PETSc of $petscdir is not a package of this distribution: make install serves it" >&2 && exit 1; }
maintainer="${DEBFULLNAME:-$(git config user.name || echo gpucsr developers)} <${DEBEMAIL:-$(git config user.email || echo "$USER@$(hostname -f)")}>" # whoever builds it, as dch has it
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH) arch=$(dpkg-architecture -qDEB_HOST_ARCH)
name=libpetscgpucsr root=$(realpath "$BUILD")/deb/root
rm -rf "$root" && mkdir -p "$root/DEBIAN" "$root/usr/share/doc/$name" "$root/usr/share/lintian/overrides"
make -s install BUILD="$BUILD" DOCS="$BUILD/deb/docs" PETSC="$PETSC" DESTDIR="$root" PREFIX=/usr LIBDIR="/usr/lib/$multiarch" DOCDIR="/usr/share/doc/$name" PYDIR=/usr/lib/python3/dist-packages -o lib -o convert
# a distribution's programs find their libraries by themselves
make -s "$BUILD/deb/gpucsr-convert" "$BUILD/deb/gpucsr-advise" "$BUILD/deb/bmrm" RUNPATH= BUILD="$BUILD" PETSC="$PETSC" -o "$BUILD/lib/libpetscgpucsr.so"
install -m 755 "$BUILD/deb/gpucsr-convert" "$BUILD/deb/gpucsr-advise" "$BUILD/deb/bmrm" "$root/usr/bin/"
strip --strip-unneeded "$root/usr/lib/$multiarch/libpetscgpucsr.so" && strip "$root"/usr/bin/*
mkdir -p "$root$petscdir" && ln -s "$(realpath -m --relative-to="$petscdir" "/usr/lib/$multiarch/libpetscgpucsr.so")" "$root$petscdir/libpetscgpucsr.so"

# what a distribution expects beside it
doc=$root/usr/share/doc/$name
{
  printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: gpucsr\n\nFiles: *\n'
  printf 'Copyright: 2026, gpucsr developers\nLicense: BSD-2-clause\n'
  sed '1,/^Copyright/d; s/^$/./; s/^/ /' LICENSE | sed '1{/^ \.$/d}'
} >"$doc/copyright"
rm -f "$doc/LICENSE"
mv "$doc/CHANGELOG" "$doc/changelog"
printf '%s (%s) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- %s  %s\n' $name "$version-1" "$maintainer" "$(date -R -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}")" >"$doc/changelog.Debian"
gzip -9n "$doc/changelog" "$doc/changelog.Debian"
find "$root/usr/share/man" -name '*.[0-9]' -exec gzip -9n {} +
{
  echo "# a plugin that programs name by its file: it has no version of its ABI in its name"
  echo "$name: shared-library-lacks-version *"
  echo "$name: link-to-shared-library-in-wrong-package *"
  echo "$name: lacks-unversioned-link-to-shared-library *"
  echo "# built from upstream's tree, for no distribution's archive"
  echo "$name: initial-upload-closes-no-bugs *"
  echo "# the CUDA runtime is linked in, so that the package needs the driver alone"
  echo "$name: hardening-no-fortify-functions *"
} >"$root/usr/share/lintian/overrides/$name"

# dependencies from what the binaries are linked with
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
mkdir "$work/debian" && printf 'Source: %s\n\nPackage: %s\nArchitecture: any\n' $name $name >"$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O --ignore-missing-info -l"$petscdir" "$root/usr/lib/$multiarch/libpetscgpucsr.so" "$root"/usr/bin/* 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
minor=$(pkg-config --modversion "$PETSC" | cut -d. -f1-2)
case $depends in *petsc*) ;; *) depends="$depends, ${ours%%[: ]*}" ;; esac
cat >"$root/DEBIAN/control" <<END
Package: $name
Version: $version-1
Architecture: $arch
Maintainer: $maintainer
Depends: $depends
Suggests: libcuda1, python3-matplotlib, python3-petsc4py, python3-sklearn
Section: math
Priority: optional
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Description: sparse matrices, vectors and solvers on NVIDIA GPUs for PETSc $minor
 A shared library that PETSc loads at run time; with it an unmodified program
 computes on an NVIDIA GPU: products with sparse matrices, vectors, conjugate
 gradients and BiCGStab, and bundle methods for learning. Without a GPU the
 same options run on the CPU.
 .
 Programs name it as -dll_append /usr/lib/$multiarch/libpetscgpucsr.so
END
chmod 644 "$root/usr/lib/$multiarch/libpetscgpucsr.so"
echo 'activate-noawait ldconfig' >"$root/DEBIAN/triggers"
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
chmod -R u=rwX,go=rX "$root"
dpkg-deb --root-owner-group --build "$root" "$BUILD/deb/${name}_$version-1_$arch.deb" >/dev/null
rm -rf "$root" "$BUILD/deb/docs"
echo "$BUILD/deb/${name}_$version-1_$arch.deb"
