#!/bin/bash
# A run of one input on the nodes of a cluster, and on from its checkpoint when the job is started again:
#
#   sbatch job.sh input.toml              # as often as it takes; `sbatch --dependency=singleton` queues the next one now
#   LAUNCH="mpirun -n 4" ./job.sh input.toml
#
#SBATCH --job-name=zellige
#SBATCH --nodes=4 --ntasks-per-node=32 --cpus-per-task=1
#SBATCH --time=02:00:00 --signal=TERM@120
set -euo pipefail

input=$1
out=${2:-out/$(basename "${input%.*}")}
zellige=${ZELLIGE:-zellige}
launch=${LAUNCH:-srun --mpi=pmix}

# The cut, the memory of a part and the forecast, once and in one process.
parts=${SLURM_NTASKS:-}
[ -z "$parts" ] || "$zellige" run "$input" --dry-run --device cpu --parts "$parts"

# A job that comes after the end has nothing to do.
if grep -qs '"ending": "finished"' "$out/summary.json"; then
  echo "$out is complete: remove it, or name another folder, to compute it again"
  exit 0
fi

# A run that was cut off leaves a checkpoint: the batch system's SIGTERM, two minutes before the end, is enough for it.
resume=()
[ ! -e "$out/checkpoint/latest.zck" ] || resume=(--resume "$out")
exec $launch "$zellige" run "$input" --device cpu -o "$out" "${resume[@]}"
