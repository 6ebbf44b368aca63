-- A journal that cox wrote with schema 1: a job and an array of three, all ended.
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE job (
	id INTEGER PRIMARY KEY, name TEXT NOT NULL, user TEXT NOT NULL, state TEXT NOT NULL,
	submitted INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER NOT NULL,
	exit INTEGER NOT NULL, detail TEXT NOT NULL
) STRICT;
CREATE TABLE journal (
	seq INTEGER PRIMARY KEY,
	leader_epoch INTEGER NOT NULL,
	at INTEGER NOT NULL, -- microseconds since the Unix epoch
	kind TEXT NOT NULL,
	job INTEGER NOT NULL,
	data TEXT NOT NULL
) STRICT;
INSERT INTO "journal" VALUES(1,1,1795246154629358,'submitted',1,'{"first":1,"spec":{"name":"hello","owner":{"user":"root","uid":0,"gid":0},"groups":[{"nodes":{},"tasks":{"want":1},"per_task":{"cpu":1000}}],"program":{"kind":"batch","script_hash":"8fcc4a115bd32f984b8b12d4da8d30496977c80f361aadc9fc8290b95cf3a1aa","script_name":"a.sh"},"output":{"stdout":"slurm-%j.out"},"env":{"hash":"db54bbc26bf81f5b243a0f8db2dfb9844f4abe7b35c244b71436a5760f1b8788"},"work_dir":"/srv/demo","source":{"form":"sbatch","file":"a.sh","given":{"job-name":"hello","ntasks":"1"},"lines":[2,3],"host":"login1","submit":"/srv/demo"}}}');
INSERT INTO "journal" VALUES(2,1,1795246154630193,'allocation-held',1,'{"allocation":{"id":1,"job":1,"attempt":1,"epoch":1,"pool":"local","status":"held","claims":[{"node":"v1","group":0,"tasks":1,"take":{"cpu":1000}}]}}');
INSERT INTO "journal" VALUES(3,1,1795246154662714,'attempt-started',1,'{"ref":{"allocation":1,"attempt":1},"started":"2026-11-21T07:29:14.662270011Z"}');
INSERT INTO "journal" VALUES(4,1,1795246154672985,'attempt-ended',1,'{"ref":{"allocation":1,"attempt":1},"state":"COMPLETED","by":"engine","report":{"ref":{"allocation":1,"attempt":1},"job":1,"version":4294967305,"phase":5,"started":"2026-11-21T07:29:14.662270011Z","ended":"2026-11-21T07:29:14.665865635Z","cause":"exited","exit":{"status":0},"nodes":[{"node":"v1","phase":5,"pid":17256}],"tasks":[{"step":-1,"rank":0,"node":"v1","pid":17265,"started":"2026-11-21T07:29:14.664742903Z","ended":"2026-11-21T07:29:14.665845458Z","exit":{"status":0},"cause":"exited","log":"/srv/demo/slurm-1.out"}],"files":["/srv/demo/slurm-1.out"],"gone":true}}');
INSERT INTO "journal" VALUES(5,2,1795246154693418,'submitted',2,'{"first":2,"spec":{"name":"b.sh","owner":{"user":"root","uid":0,"gid":0},"array":{"text":"0-2","indices":[0,1,2],"step":1},"groups":[{"nodes":{},"tasks":{"want":0},"per_task":{"cpu":1000}}],"program":{"kind":"batch","script_hash":"047ea77af9e1c0eb5014288b3a07ae1ae9dd26c23ef1f8e8a5dc0a227a4fff3d","script_name":"b.sh"},"output":{"stdout":"slurm-%A_%a.out"},"env":{"hash":"db54bbc26bf81f5b243a0f8db2dfb9844f4abe7b35c244b71436a5760f1b8788"},"work_dir":"/srv/demo","source":{"form":"sbatch","file":"b.sh","given":{"array":"0-2"},"lines":[2,2],"host":"login1","submit":"/srv/demo"}}}');
INSERT INTO "journal" VALUES(6,2,1795246154694112,'allocation-held',2,'{"allocation":{"id":2,"job":2,"attempt":1,"epoch":2,"pool":"local","status":"held","claims":[{"node":"v1","group":0,"tasks":1,"take":{"cpu":1000}}]}}');
INSERT INTO "journal" VALUES(7,2,1795246154694116,'allocation-held',3,'{"allocation":{"id":3,"job":3,"attempt":1,"epoch":2,"pool":"local","status":"held","claims":[{"node":"v1","group":0,"tasks":1,"take":{"cpu":1000}}]}}');
INSERT INTO "journal" VALUES(8,2,1795246154710905,'attempt-started',2,'{"ref":{"allocation":2,"attempt":1},"started":"2026-11-21T07:29:14.710277111Z"}');
INSERT INTO "journal" VALUES(9,2,1795246154710967,'attempt-started',3,'{"ref":{"allocation":3,"attempt":1},"started":"2026-11-21T07:29:14.710740676Z"}');
INSERT INTO "journal" VALUES(10,2,1795246154724187,'attempt-ended',3,'{"ref":{"allocation":3,"attempt":1},"state":"FAILED","by":"engine","report":{"ref":{"allocation":3,"attempt":1},"job":3,"version":8589934610,"phase":5,"started":"2026-11-21T07:29:14.710740676Z","ended":"2026-11-21T07:29:14.714401181Z","cause":"exited","exit":{"status":1},"nodes":[{"node":"v1","phase":5,"pid":17281}],"tasks":[{"step":-1,"rank":0,"node":"v1","pid":17300,"started":"2026-11-21T07:29:14.713271765Z","ended":"2026-11-21T07:29:14.714382757Z","exit":{"status":1},"cause":"exited","log":"/srv/demo/slurm-2_1.out"}],"files":["/srv/demo/slurm-2_1.out"],"gone":true}}');
INSERT INTO "journal" VALUES(11,2,1795246154729268,'allocation-held',4,'{"allocation":{"id":4,"job":4,"attempt":1,"epoch":2,"pool":"local","status":"held","claims":[{"node":"v1","group":0,"tasks":1,"take":{"cpu":1000}}]}}');
INSERT INTO "journal" VALUES(12,2,1795246154729929,'attempt-ended',2,'{"ref":{"allocation":2,"attempt":1},"state":"COMPLETED","by":"engine","report":{"ref":{"allocation":2,"attempt":1},"job":2,"version":8589934611,"phase":5,"started":"2026-11-21T07:29:14.710277111Z","ended":"2026-11-21T07:29:14.713828353Z","cause":"exited","exit":{"status":0},"nodes":[{"node":"v1","phase":5,"pid":17282}],"tasks":[{"step":-1,"rank":0,"node":"v1","pid":17299,"started":"2026-11-21T07:29:14.712406201Z","ended":"2026-11-21T07:29:14.713815048Z","exit":{"status":0},"cause":"exited","log":"/srv/demo/slurm-2_0.out"}],"files":["/srv/demo/slurm-2_0.out"],"gone":true}}');
INSERT INTO "journal" VALUES(13,2,1795246154737423,'attempt-started',4,'{"ref":{"allocation":4,"attempt":1},"started":"2026-11-21T07:29:14.737188812Z"}');
INSERT INTO "journal" VALUES(14,2,1795246154747886,'attempt-ended',4,'{"ref":{"allocation":4,"attempt":1},"state":"COMPLETED","by":"engine","report":{"ref":{"allocation":4,"attempt":1},"job":4,"version":8589934620,"phase":5,"started":"2026-11-21T07:29:14.737188812Z","ended":"2026-11-21T07:29:14.740214293Z","cause":"exited","exit":{"status":0},"nodes":[{"node":"v1","phase":5,"pid":17303}],"tasks":[{"step":-1,"rank":0,"node":"v1","pid":17311,"started":"2026-11-21T07:29:14.738955506Z","ended":"2026-11-21T07:29:14.740183095Z","exit":{"status":0},"cause":"exited","log":"/srv/demo/slurm-2_2.out"}],"files":["/srv/demo/slurm-2_2.out"],"gone":true}}');
CREATE TABLE leader (one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER NOT NULL, who TEXT NOT NULL) STRICT;
INSERT INTO "leader" VALUES(1,2,'cox run, process 17268');
CREATE TABLE projection (name TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT;
INSERT INTO "projection" VALUES('job',0);
COMMIT;
