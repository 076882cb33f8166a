#!/usr/bin/env bash
# Makes the packages and the archive from the release build, and uses both in a bare Debian made by debootstrap: the command,
# a study, find_package(kolo), architecture search, Python, and removal without a trace.
#
#   packages_test.sh SOURCE_DIR
#
# KOLO_CHROOT_BASE names a tar file of a bare system (debootstrap --variant=minbase), which saves minutes.
set -euo pipefail
source_dir="$1"
skip() { echo "skipped: $*"; exit 77; }
((EUID == 0)) || skip "a chroot needs root"
for tool in debootstrap lintian patchelf zstd unshare; do
  command -v "$tool" >/dev/null || skip "$tool is missing; scripts/setup package installs it"
done
unshare -m true || skip "mount namespaces are not permitted"

scratch="$(mktemp -d)"
trap 'rm -rf --one-file-system "$scratch"' EXIT
step() { printf -- '--- %s (after %s s)\n' "$*" "$SECONDS"; }
fail() { echo "FAIL: $*" >&2; exit 1; }

step "packages and archive"
KOLO_PACKAGE_BUILT=1 "$source_dir/scripts/package"
packages="$source_dir/build/release/packages"
archive="$(echo "$packages"/kolo-*-linux-*.tar.zst)"
(($(stat -c %s "$archive") <= 30000000)) || fail "the archive is larger than 30 MB"

base="${KOLO_CHROOT_BASE:-$scratch/base.tar}"
if [[ ! -e "$base" ]]; then
  step "a bare Debian"
  debootstrap --variant=minbase bookworm "$scratch/made" >"$scratch/debootstrap.log" 2>&1 ||
    skip "debootstrap failed: $(tail -n 1 "$scratch/debootstrap.log")"
  tar -C "$scratch/made" -cf "$base" . && rm -rf "$scratch/made"
fi

# in_chroot NAME: runs the script on standard input in a system of its own, with proc and shared memory.
in_chroot() {
  local root="$scratch/$1"
  mkdir -p "$root/packages"
  tar -C "$root" -xf "$base"
  cp "$packages"/*.deb "$archive" "$root/packages/"
  cp -L /etc/resolv.conf "$root/etc/"
  cp -r "$source_dir/tests/packages/project" "$root/project"
  # The programs are the examples of the README.
  for kind in cpp python; do
    awk -v begin="\`\`\`$kind" '$0 == begin {n = 1; next} /^```/ && n {exit} n {print}' "$source_dir/README.md" >"$root/project/hello.$kind"
  done
  mv "$root/project/hello.cpp" "$root/project/hello.cc"
  cat >"$root/script"
  unshare -m --pid --fork bash -c "mount -t proc proc '$root/proc' && mount --bind /dev '$root/dev' &&
    exec chroot '$root' /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
      DEBIAN_FRONTEND=noninteractive bash -euo pipefail /script"
  rm -rf --one-file-system "$root"
}

# What a newcomer tries first, with whatever `kolo` is in PATH.
read -r -d '' first_steps <<'SCRIPT' || true
kolo info
kolo run -np 2 sh -c 'echo rank $KOLO_RANK' | sort | tee /tmp/ranks
grep -qx '\[1\]<stdout>:rank 1' /tmp/ranks
cd "$(mktemp -d)"
printf 'x: {uniform: [0, 1]}\n' >space.yaml
kolo tune --space space.yaml --metric y --mode min --num-samples 4 --name small -- sh -c 'echo "y={x}"' </dev/null
kolo best small
SCRIPT

step "the archive in a bare Debian"
in_chroot archive <<SCRIPT
rm -rf /packages/*.deb
if command -v zstd >/dev/null; then :; else apt-get -qq update && apt-get -qq install -y --no-install-recommends zstd >/dev/null; fi
mkdir -p "/opt/with blank" && cd "/opt/with blank" && tar -xf /packages/kolo-*.tar.zst
export PATH="\$(echo "/opt/with blank"/kolo-*/bin):\$PATH"
$first_steps
kolo info | grep -F '[X] tcp'
SCRIPT

step "the packages in a bare Debian"
in_chroot packages <<SCRIPT
find / -xdev -not -path '/packages*' -not -path '/project*' | grep -i kolo && exit 1
apt-get -qq update
apt-get -qq install -y --no-install-recommends /packages/kolo_*.deb >/dev/null
$first_steps
# What \`kolo info\` advises can be typed.
apt-get -qq install --simulate \$(kolo info | sed -n 's/^ *apt-get install//p') >/dev/null
zcat /usr/share/man/man1/kolo-tune.1.gz | grep -q '^.SH SYNOPSIS'
test -s /usr/share/bash-completion/completions/kolo
! kolo nas list 2>/tmp/said || exit 1
grep -q 'install the package kolo-torch' /tmp/said

apt-get -qq install -y --no-install-recommends /packages/libkolo-dev_*.deb g++ cmake make >/dev/null
cmake -S /project -B /tmp/build && cmake --build /tmp/build
kolo run -np 4 /tmp/build/hello | tee /tmp/said
grep -F '4 ranks, average 2.5' /tmp/said
kolo run -np 2 --transport tcp /tmp/build/hello | grep -F '2 ranks, average 1.5'

apt-get -qq install -y --no-install-recommends /packages/kolo-torch_*.deb >/dev/null
kolo nas regevo --problem benchmark.nas.linear_reg --max-evals 2

apt-get -qq install -y --no-install-recommends /packages/python3-kolo_*.deb >/dev/null
cd /tmp && kolo run -np 2 python3 -c 'import kolo; kolo.init(); print(kolo.rank(), "of", kolo.size(), kolo.__version__)' | sort | tee /tmp/said
grep -F '1 of 2 0.1.0' /tmp/said
python3 -c 'from kolo import tune
tune.run(lambda config: tune.report(y=config["x"]), config={"x": tune.grid_search([3, 1, 2])}, metric="y", mode="min", name="from-python")'
kolo best from-python | grep -F 'x=1'
apt-get -qq install -y --no-install-recommends python3-torch python3-numpy >/dev/null
kolo run -np 4 python3 /project/hello.python | grep -F '4 ranks, average 2.5'
kolo run -np 2 --transport tcp python3 -c 'import torch, kolo.torch as hvd; hvd.init(); print("sum", hvd.allreduce(torch.ones(3), op=hvd.Sum).tolist())' | grep -F 'sum [2.0, 2.0, 2.0]'

apt-get -qq purge -y kolo libkolo-dev kolo-torch python3-kolo >/dev/null
rm -rf /tmp/* /root/kolo_results /root/.local/state/kolo # studies are their user's
left="\$(find / -xdev -iname '*kolo*' -not -path '/packages*' -not -path '/proc/*' -not -path '/dev/*' -not -path '/var/lib/apt/*' -not -path '/var/log/*')"
test -z "\$left" || { echo "left behind: \$left"; exit 1; }
SCRIPT
step "done"
