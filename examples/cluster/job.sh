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

# A run that was cut off leaves a checkpoint: the batch system's SIGTERM, two minutes before the end, is enough for it.
resume=()
summary=$out/summary.json checkpoint=$out/checkpoint/latest.zck
if [ "$summary" -nt "$checkpoint" ] && [ "$summary" -nt "$input" ] && grep -Eq '"ending": "(finished|limited)"' "$summary"; then
  echo "$out is complete; the name of another folder as second argument computes it again"
  exit "$(sed -n 's/^ *"exit_code": \([0-9]*\).*/\1/p' "$summary")"
fi
[ ! -e "$checkpoint" ] || resume=(--resume "$out")
exec $launch "$zellige" run "$input" --device cpu -o "$out" "${resume[@]}"
