package route

import "testing"

// judged are public scripts that a person has read and said where they belong. They are every
// sixteenth of a list of 631 (rows k·631/40), none chosen. Seven of the 40 are not here: three are no
// longer to be had, four are pages of documentation. The rules were at hand when the titles were
// written, and two titles were mended after the first run: the table keeps what was judged, and is no
// measure of how often the advice is right. Of each there are the lines that decide. All were written
// for Slurm and run there as they are; what differs is what runs inside, and what it would take to run
// them in containers.
var judged = []struct {
	row    int
	source string
	text   string // below #!/bin/bash
	title  string
	or     string // another place, and what it takes; empty: there is none
	reason string
}{
	{
		15, "AzmiHaider92/ViewFormer:cluster_scripts/train_codebook.sh",
		"#SBATCH -G 2\n#SBATCH --nodes 1\nsrun --mpi=pmix --container-image=/users/r/containers/tensorflow.sqsh --container-mounts=/users/r/code:/mnt/code -w dgx02 --pty /bin/bash -c \"python /mnt/code/cli.py train\"\n",
		"mpi on slurm", "mpi on kubernetes, if the job names its image in place of srun's container and /users/r/containers and /users/r/code are on volumes",
		"one node; the image is a file of the site and pyxis starts it",
	},
	{
		63, "weecology/DeepForest:HPC/submit_cpu_job.sh",
		"#SBATCH --nodes=1\n#SBATCH --ntasks=1\nml git\nml tensorflow/1.7.0\ncd /home/b/DeepForest\npython train.py\n",
		"slurm", "kubernetes, if an image holds git and tensorflow/1.7.0 and /home/b/DeepForest is on a volume",
		"modules by ml, and a home directory",
	},
	{
		78, "GoogleCloudPlatform/cluster-toolkit:examples/machine-learning/a3-megagpu-8g/nccl-tests/run-nccl-tests.sh",
		"#SBATCH -N 2\n#SBATCH --gpus-per-node=8\n#SBATCH --ntasks-per-node=8\nexport NCCL_SOCKET_IFNAME=enp0s12\nsrun -l \\\n\t-N \"${SLURM_NNODES}\" \\\n\t--mpi=pmi2 \\\n\t--container-image=\"${CONTAINER_IMAGE}\" \\\n\tsh -c \"\n  /nccl/nccl-tests/build/all_gather_perf -b 8M;\n  \"\n",
		"mpi on slurm", "", "16 coupled tasks on the machines' network; the srun is continued over lines",
	},
	{
		94, "Helsinki-NLP/prosody:scripts/train.sh",
		"#SBATCH -n 1\n#SBATCH --gres=gpu:k80:1\nmodule purge\nmodule load gcc cuda python-env/3.6.3-ml\nSRCDIR=/homeappl/home/c/prosody\npython $SRCDIR/main.py\n",
		"slurm", "kubernetes, if an image holds gcc, cuda and python-env/3.6.3-ml and /homeappl/home/c is on a volume", "one GPU, modules of the site",
	},
	{
		110, "pyg-team/pytorch_geometric:examples/multi_gpu/distributed_sampling_multinode.sbatch",
		"#SBATCH -N 2\n#SBATCH --ntasks=4\n#SBATCH --gpus-per-task=1\nexport MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\nsrun --output=0 python distributed_sampling_multinode.py\n",
		"torchrun on slurm", "", "ranks of several nodes that meet at MASTER_ADDR",
	},
	{
		126, "luisas/2023_SingleCellEbolaLncRNAs_NatComms:nextflow_pipelines/01_CLUSTER_Marenostrum/11b_correlation_viralload.sbatch",
		"#SBATCH --cpus-per-task=48\nmodule load singularity/3.2.0\nCONTAINER=/gpfs/projects/b/rdeanalysis.simg\nsrun singularity exec ${CONTAINER} Rscript /gpfs/projects/b/code.R\n",
		"slurm", "kubernetes, if an image holds singularity/3.2.0, the job names its image in place of singularity and /gpfs/projects/b is on a volume", "an image that is a file of the site, data of the site",
	},
	{
		141, "NVIDIA/NeMo-Run:test/core/execution/artifacts/group_slurm.sh",
		"#SBATCH --gpus-per-node=8\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=8\nhead_node_ip=$(srun --nodes=1 --ntasks=1 -w \"$head_node\" hostname --ip-address)\nsrun --container-image some-image --container-mounts /some/job/dir:/nemo_run bash ./scripts/start_server.sh & pids[0]=$!\nsrun --container-image some-image --container-mounts /some/job/dir:/nemo_run bash ./scripts/echo.sh & pids[1]=$!\n",
		"slurm", "kubernetes, if the job names its image in place of srun's container and /some/job/dir is on a volume", "two steps side by side in one allocation, by srun and pyxis",
	},
	{
		157, "OpenRLHF/OpenRLHF:examples/scripts/train_ppo_ray_slurm.sh",
		"#SBATCH -N 2\n#SBATCH --ntasks-per-node=1\n#SBATCH --exclusive\nMOUNT=\"$OPENRLHF_PATH:/openrlhf,$HOME/.cache:/root/.cache\"\nsrun --nodes=1 --ntasks=1 -w \"$node_1\" --container-image=\"$IMAGE_NAME\" --container-mounts=\"$MOUNT\" bash -c \\\n    \"pip install ray[default]==$RAY_VERSION \\\n    && /root/.local/bin/ray start --head --node-ip-address=$ip --port=$port --block\" &>> ${JOBLOG} &\n",
		"ray on slurm", "ray on kubernetes, if the job names its image in place of srun's container, $HOME/.cache is on a volume and a Ray cluster is there for it: the script starts one by srun", "Ray that srun starts inside the allocation",
	},
	{
		173, "SS961214/Diagonalization:GPU/testing_cheevd_GPU.sh",
		"#SBATCH --mem=10GB\n#PBS -N G_cheevd\nprogram=$rootDIR/bin/Diagonalization/testing.out\nfor n in $(seq 1 100);do $program $((500*$n)); done\n",
		"slurm", "kubernetes, if an image holds $program", "its own program, built on the machines",
	},
	{
		189, "TjuJianyu/RRL:scripts/supervised_transfer/imagenet/to_inat18/linear_probing/rn50wide.sh",
		"#SBATCH --nodes=1\n#SBATCH --gpus-per-node=1\n#SBATCH --array=0-47\nsrun --output=${EXPERIMENT_PATH}/%j.out python supervised.py --data_path data/inaturalist18 || scontrol requeue $SLURM_JOB_ID\n",
		"slurm", "kubernetes, if an image holds python", "an array of jobs of one GPU: its shape suits Kubernetes, and no image is named",
	},
	{
		205, "Weedarlol/Master:fox/GPU_3d/start.slurm",
		"for SCENARIO in \"$@\"; do\n    cat << EOF > \"${TEMP_SCRIPT}\"\n#!/bin/bash\n#SBATCH -N 1\nmodule load CUDA/11.7.0\nmpirun ./out\nEOF\n    sbatch \"${TEMP_SCRIPT}\"\ndone\n",
		"slurm", "kubernetes, if its containers can submit the jobs that it submits by sbatch", "it only writes and submits scripts; their text is not its own",
	},
	{
		220, "adianliusie/robust-prompt-classifier:search/submit/SL4_submit_sent.sh",
		"#SBATCH --nodes=1\n#SBATCH --gres=gpu:1\n. /etc/profile.d/modules.sh\nmodule purge\nmodule load rhel8/default-amp\napplication=\"flan-sent.sh\"\nCMD=\"$application $@\"\n#CMD=\"mpirun -npernode 4 $application\"\neval $CMD\n",
		"slurm", "kubernetes, if an image holds rhel8/default-amp", "a module that the site requires; mpirun is only in a comment",
	},
	{
		268, "crusoecloud/solutions-library:grafana-cmk/examples/slurm-gpu-burn/train.sbatch",
		"#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --exclusive\nexport NCCL_DEBUG=WARN\nMASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\nCMD=\"pip install -q wandb; python -u -m torch.distributed.run \\\n  --nnodes ${NNODES} \\\n  /workspace/train.py\"\nsrun \\\n  --container-image=\"${CONTAINER_IMAGE}\" \\\n  --container-mounts=\"$PWD:/workspace\" \\\n  bash -c \"$CMD\"\n",
		"torchrun on slurm", "", "two nodes of one training; the command is the text of a variable",
	},
	{
		283, "fasrc/User_Codes:Courses/CS205/MPI_2021/Example4/sbatch.run",
		"#SBATCH -n 4\n#SBATCH -N 1\nPRO=mmult\nmodule load gcc/9.3.0-fasrc01 openmpi/4.0.5-fasrc01\nsrun -n $SLURM_NTASKS --mpi=pmix ./${PRO}.x > ${PRO}.dat\n",
		"mpi on slurm", "mpi on kubernetes, if an image holds gcc/9.3.0-fasrc01 and openmpi/4.0.5-fasrc01", "MPI on one node, compiler and library of the site",
	},
	{
		315, "fasrc/User_Codes:AI/TensorFlow/Example3/run.sbatch",
		"#SBATCH -c 8\n#SBATCH --gres=gpu:4\nsrun -c $SLURM_CPUS_PER_TASK singularity pull --disable-cache docker://tensorflow/tensorflow:latest-gpu\nsingularity exec --nv tensorflow_latest-gpu.sif python tf_multi_gpu.py\n",
		"slurm", "kubernetes, if the job names its image in place of singularity", "a public image: nearest of all to a pod",
	},
	{
		331, "fasrc/User_Codes:IQSS-slurm-examples/hello.python2.slurm",
		"#SBATCH -n 1 # Number of cores\n#SBATCH -N 1\nmodule load python/2.7.14-fasrc02\nchmod u+x ./hello.py2\n./hello.py2\n",
		"slurm", "kubernetes, if an image holds python/2.7.14-fasrc02", "a module",
	},
	{
		347, "fasrc/User_Codes:Notes/JobArrays/Exercise_nonsequential/array_job_nonsequence.sh",
		"#SBATCH --nodes=1\n#SBATCH --mem=4G\nWORKDIR=$PWD/masks\nfind $WORKDIR -type d -name \"sub*\" > filelist.txt\ndirname=$(awk \"NR==${SLURM_ARRAY_TASK_ID}\" filelist.txt)\necho \"Done processing $dirname\"\n",
		"kubernetes", "", "the shell's own programs on one node: it runs anywhere where its folder is",
	},
	{
		378, "fufeisi/Usage-of-the-8bit-Quantization-in-Neural-Network-Training:ImageNet/quan50.sh",
		"#SBATCH --gres=gpu:8\n#SBATCH --cpus-per-gpu=8\nfor i in 1 2 3 4 5\ndo\n     for batch in 1024 2048\n     do\n          python main.py --quan 1 --world-size 8 --rank 0 --batch-size $batch\n     done\ndone\n",
		"slurm", "kubernetes, if an image holds python", "eight GPUs of one node, in the environment of its submission",
	},
	{
		394, "halixness/deepSWE:hpc/test",
		"#SBATCH --nodes=1\n#SBATCH --gres=gpu:1\nmodule load miniconda3\nsource \"$CONDA_PREFIX/etc/profile.d/conda.sh\"\nconda activate swe-cv-pytorch\npython -u test_model.py\n",
		"slurm", "kubernetes, if an image holds miniconda3 and the conda environment swe-cv-pytorch", "conda of the site",
	},
	{
		410, "jacquesboitreaud/vina_docking:job_array.sh",
		"#SBATCH --array 1-10\n#SBATCH --time=24:00:00\npython3 main_dock_smi.py -t drd3 -df mol_batch_$SLURM_ARRAY_TASK_ID\n",
		"slurm", "kubernetes, if an image holds python3", "single tasks; no image is named",
	},
	{
		425, "jpata/particleflow:scripts/flatiron/pt_raytune_a100_1GPUperTrial.sh",
		"#SBATCH -N 4\n#SBATCH --tasks-per-node=1\n#SBATCH --gpus-per-task=4\nmodule --force purge; module load modules/2.2-20230808\nmodule load slurm gcc cuda/12.1.1 nccl openmpi apptainer\nsource ~/miniconda3/bin/activate pytorch\nip=$(srun --nodes=1 --ntasks=1 -w $node_1 hostname --ip-address)\nsrun --nodes=1 --ntasks=1 -w $node_1 \\\n  ray start --head --node-ip-address=\"$node_1\" --port=$port --block &\npython3 -u mlpf/pipeline.py --train\n",
		"ray on slurm", "ray on kubernetes, if an image holds modules/2.2-20230808, slurm, gcc and 5 more, ~/miniconda3 is on a volume and a Ray cluster is there for it: the script starts one by srun",
		"Ray that srun starts on the nodes of the allocation",
	},
	{
		441, "knightlab-analyses/multiomic-cooccurrences:scripts/ihmp_mmvec.sh",
		"#SBATCH --ntasks=16\n#SBATCH -N 1\n#SBATCH --gres=gpu:01\nsource ~/.bashrc\nmodule load slurm\nmodule load cuda/10.0.130_410.48\nsource ~/venvs/mmvec-tf/bin/activate\ncd /mnt/home/j/research/ihmp\nsbatch -N 1 -p gpu --gres=gpu:02 --wrap \"mmvec paired-omics --arm-the-gpu\"\n",
		"slurm", "kubernetes, if an image holds slurm and cuda/10.0.130_410.48, ~/.bashrc, ~/venvs and /mnt/home/j are on volumes and its containers can submit the jobs that it submits by sbatch", "it submits other jobs",
	},
	{
		457, "lyulyul/shine-cluster:slurm-examples/pytorch.slurm",
		"#SBATCH --nodes=1\n#SBATCH --gres=gpu:1\nsource /opt/anaconda3/bin/activate\nconda activate torch\n./pytorch.py\n",
		"slurm", "kubernetes, if an image holds the conda environment torch and /opt/anaconda3/bin is on a volume", "conda of the machines",
	},
	{
		473, "mlfoundations/open_clip:docs/script_examples/stability_example.sh",
		"#SBATCH --nodes 30\n#SBATCH --ntasks-per-node=8\n#SBATCH --exclusive\nmodule load openmpi\nexport MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\nsrun --comment laion --cpu_bind=v --accel-bind=gn python -m training.main \\\n    --logs /scratch/logs/\n",
		"torchrun on slurm", "", "240 ranks of one training",
	},
	{
		504, "nspranav/Ukbiobank_ADHD:RunArrayDistributed.sh",
		"#SBATCH -N 1\n#SBATCH -n 1\n#SBATCH --gres=gpu:v100:2\nsource /home/users/p/anaconda3/bin/activate latest\npython distributed_conv.py ${SLURM_ARRAY_TASK_ID}\nmodule load Framework/Matlab2019b\nmatlab -batch 'array_example($SLURM_ARRAY_TASK_ID)'\n",
		"slurm", "kubernetes, if an image holds the conda environment latest and Framework/Matlab2019b and /home/users/p is on a volume", "conda in a home directory, a licensed program of the site; one node, though its name says distributed",
	},
	{
		520, "oracle-quickstart/oci-hpc:samples/gpu/nccl_run_allreduce_containers_H100.sbatch",
		"#SBATCH --nodes=2\n#SBATCH --gpus-per-node=8\n#SBATCH --ntasks-per-node=8\ncd /nfs/cluster\nMPIVARS_PATH=`ls /usr/mpi/gcc/openmpi-*/bin/mpivars.sh`\nexport NCCL_CROSS_NIC=2 \\\n       NCCL_DEBUG=WARN\nsrun --mpi=pmi2 --gpus-per-node=$SBATCH_GPUS_PER_NODE \\\n     --container-image=$CONTAINER_IMAGE \\\n     bash -c \"\n     source $MPIVARS_PATH &&\n     /nccl/build/all_reduce_perf -b 8 -e 16G\n     \"\n",
		"mpi on slurm", "", "16 coupled tasks with the machines' MPI",
	},
	{
		536, "paviudes/chflow:input/beluga/19_06_2020_12_06_16.sh",
		"#SBATCH --array=0-7:1\n#SBATCH --ntasks-per-node=40\n#SBATCH --nodes=1\nmodule load intel python scipy-stack\ncd /project/def-j/pavi/chflow\n./chflow.sh 19_06 ${SLURM_ARRAY_TASK_ID}\n",
		"slurm", "kubernetes, if an image holds intel, python and scipy-stack and /project/def-j/pavi is on a volume", "modules and the site's project space",
	},
	{
		552, "rbawden/mt-bigscience:scripts/run_diabla_t0.slurm",
		"#SBATCH --gres=gpu:2\n#SBATCH --ntasks=1\nmaindir=/gpfswork/rech/n/lm-evaluation-harness\n#module load pytorch-gpu/py3/1.11.0\nTRANSFORMERS_OFFLINE=1 HF_DATASETS_OFFLINE=1 \\\nTOKENIZERS_PARALLELISM=false \\\npython $maindir/main.py --model_args \"use_accelerate=True,pretrained=$modelpath\"\n",
		"slurm", "kubernetes, if an image holds python and /gpfswork/rech/n is on a volume", "the site's file system; the modules are in a comment",
	},
	{
		567, "sinaahmadi/ScriptNormalization:training/SLURMs/Kurmanji-Arabic.slurm",
		"#SBATCH --nodes=1\n#SBATCH --ntasks=8\n#SBATCH --gres=gpu:A100.80gb:1\nml gnu10; ml cuda; ml cudnn;\nRUNPATH=/scratch/s\ncd $RUNPATH\nsource $RUNPATH/venvs/joeynmt_torch1/bin/activate\npython3 -m joeynmt train training/configs/K.yaml\ndeactivate\n",
		"slurm", "kubernetes, if an image holds gnu10, cuda and cudnn and /scratch/s and $RUNPATH/venvs/joeynmt_torch1 are on volumes", "modules, and an environment on scratch",
	},
	{
		583, "trevorjung02/Temporal:slurm/slurm-5863084.out",
		"#SBATCH --nodes=1\n#SBATCH --gres=gpu:1\nsource ~/.bashrc\nconda activate ckl\npython run.py --config configs/t5_baseline.json\n--------------------\nGPU available: True, used: True\nAll DDP processes registered. Starting ddp with 1 processes\n",
		"slurm", "kubernetes, if an image holds the conda environment ckl and ~/.bashrc is on a volume", "a job's output that begins with its script: as a script it is one GPU and conda",
	},
	{
		599, "vtlim/Hv1:slurm/old/nes_namd.slurm",
		"#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=12\nmodule load namd/2.11-OpenMPI_gcc\nslurm_startjob(){\nsrun hostname -s > $HOSTFILE\nmpirun namd2 +isomalloc_sync $fname.inp > $fname.log\n}\nslurm_startjob\n",
		"mpi on slurm", "", "MPI over four nodes, inside of a function",
	},
	{
		615, "ymeng3/PDOT_code:script/run.sh-27",
		"#SBATCH --cpus-per-task=16\n#SBATCH --mem=16G\nmodule load julia  # Load Julia module, if available\njulia /home/y/experiments/test/dataset2.jl\n",
		"slurm", "kubernetes, if an image holds julia and /home/y/experiments is on a volume", "a module and a home directory",
	},
	{
		631, "zzhang87/ChestXray:evaluate_teachers.sh",
		"#SBATCH -n 8\n#SBATCH --gres=gpu:1\n#SBATCH -N 1\n#PBS -m abe\nDATA_DIR=/home/p/Insight/CXR\nfor teacher in `seq 1 $PARTITION_NUM`\ndo\npython evaluate_model.py \\\n  --data_dir=${DATA_DIR}\ndone\n",
		"slurm", "kubernetes, if an image holds python and /home/p/Insight is on a volume", "data in a home directory",
	},
}

// TestJudgedScripts compares the advice with the judgement of a person.
func TestJudgedScripts(t *testing.T) {
	right := 0
	for _, c := range judged {
		a := Advise(read(t, "x.sbatch", "#!/bin/bash\n"+c.text))
		or := ""
		if a.Or != nil {
			or = a.Or.Title + ", if " + joinConditions(a.Or.If)
		}
		if a.Title() != c.title || or != c.or {
			t.Errorf("row %d, %s (%s):\n got %s; %s\nwant %s; %s", c.row, c.source, c.reason, a.Title(), or, c.title, c.or)
			continue
		}
		right++
	}
	if right < len(judged) {
		t.Errorf("%d of %d are as judged", right, len(judged))
	}
}
