// Processes as jobs: four parts as an array of jobs, their sum, a task that is tried again with more
// memory and a GPU, and one that fails and is left out.
process PART {
    array 4
    cpus 1
    memory '300 MB'
    time '5m'

    input: val x
    output: path "part_${x}.txt"
    script: "echo $x > part_${x}.txt; test -n \"\$SLURM_ARRAY_TASK_ID\""
}

process SUM {
    input: path parts
    output: stdout
    script: "echo sum \$(( \$(cat part_*.txt | paste -sd+) ))"
}

process RETRIED {
    errorStrategy 'retry'
    maxRetries 1
    memory { 200.MB * task.attempt }
    clusterOptions '--gpus=1'

    output: stdout
    script: "test ${task.attempt} = 2 || exit 12; echo attempt ${task.attempt}, \$SLURM_MEM_PER_NODE MB, GPU \$CUDA_VISIBLE_DEVICES"
}

process DOOMED {
    errorStrategy 'ignore'
    output: stdout
    script: "exit 3"
}

workflow {
    PART(Channel.of(1..4))
    SUM(PART.out.collect()).view()
    RETRIED().view()
    DOOMED().view()
}
