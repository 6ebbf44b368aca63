function slurm_job_submit(job, parts, uid) return 0 end
