/* A stand-in for libnvidia-ml.so.1: three GPUs, of which GPU 0 is partitioned
 * by MIG, GPU 1 has a computing and a drawing process, and GPU 2 is lost.
 * GPUs 0 and 1 are joined by four NVLinks. Built by the tests where there is
 * a C compiler; the structures are declared here a second time, in C, so that
 * the layout of those in Go is checked against a compiler's.
 *
 * -DREFUSE=n makes nvmlInit_v2 return n; -DOLD leaves out what drivers before
 * 2021 lack; -DCRASH dies of a bad pointer while listing.
 */
#include <stdio.h>
#include <string.h>

typedef struct fake *dev;
typedef int ret;

enum { OK = 0, BAD = 2, NOTSUP = 3, NOTFOUND = 6, SMALL = 7, LOST = 15 };

typedef struct {
	char legacy[16];
	unsigned domain, bus, slot, device_id, subsystem;
	char bus_id[32];
} pci_info;

typedef struct { unsigned long long total, free, used; } memory1;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory2;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } process;
typedef struct {
	unsigned sm, copy, dec, enc, jpeg, ofa, gpu_slices, compute_slices;
	unsigned long long memory_mb;
} attrs;

struct fake { int gpu, mig; };
static struct fake gpus[3] = {{0, -1}, {1, -1}, {2, -1}};
static struct fake migs[2] = {{0, 0}, {0, 1}};

#ifndef REFUSE
#define REFUSE 0
#endif

static ret put(char *to, unsigned n, const char *what) {
	if (strlen(what) + 1 > n) return SMALL;
	strcpy(to, what);
	return OK;
}

ret nvmlInit_v2(void) { return REFUSE; }
ret nvmlShutdown(void) { return OK; }
ret nvmlSystemGetDriverVersion(char *s, unsigned n) { return put(s, n, "550.54.15"); }
ret nvmlDeviceGetCount_v2(unsigned *n) { *n = 3; return OK; }

ret nvmlDeviceGetHandleByIndex_v2(unsigned i, dev *d) {
#ifdef CRASH
	*(volatile int *)8 = 1;
#endif
	if (i > 2) return BAD;
	if (i == 2) return LOST;
	*d = &gpus[i];
	return OK;
}

ret nvmlDeviceGetUUID(dev d, char *s, unsigned n) {
	char b[64];
	sprintf(b, d->mig < 0 ? "GPU-%d" : "MIG-%d-%d", d->gpu, d->mig);
	return put(s, n, b);
}

ret nvmlDeviceGetName(dev d, char *s, unsigned n) {
	return put(s, n, d->mig < 0 ? "NVIDIA A100-SXM4-40GB" : d->mig ? "NVIDIA A100-SXM4-40GB MIG 1g.5gb" : "NVIDIA A100-SXM4-40GB MIG 3g.20gb");
}

ret nvmlDeviceGetMemoryInfo(dev d, memory1 *m) {
	m->total = 42949672960ull; m->free = 1; m->used = 700000000 + d->gpu;
	return OK;
}

typedef struct { unsigned gpu, memory; } utilization;

ret nvmlDeviceGetUtilizationRates(dev d, utilization *u) {
	if (d->gpu == 0) return NOTSUP; /* it is partitioned */
	u->gpu = 37; u->memory = 12;
	return OK;
}

ret nvmlDeviceGetPciInfo_v3(dev d, pci_info *p) {
	memset(p, 0xff, sizeof *p);
	sprintf(p->legacy, "0000:%02X:00.0", 7 + 8 * d->gpu);
	sprintf(p->bus_id, "00000000:%02X:00.0", 7 + 8 * d->gpu);
	return OK;
}

ret nvmlDeviceGetMinorNumber(dev d, unsigned *n) { *n = 4 + d->gpu; return OK; }
ret nvmlDeviceGetComputeMode(dev d, unsigned *m) { *m = d->gpu == 1 ? 3 : 0; return OK; }

#ifndef OLD
ret nvmlDeviceGetTotalEccErrors(dev d, int type, int counter, unsigned long long *n) {
	if (type != 1 || counter != 0) return BAD;
	if (d->gpu == 0) return NOTSUP;
	*n = 3;
	return OK;
}

ret nvmlDeviceGetRemappedRows(dev d, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
	if (d->gpu == 0) return NOTSUP;
	*corrected = 7; *uncorrected = 1; *pending = 1; *failed = 0;
	return OK;
}

ret nvmlDeviceGetMemoryInfo_v2(dev d, memory2 *m) {
	if (m->version != (sizeof *m | 2 << 24)) return 25; /* version mismatch */
	m->total = 42949672960ull; m->reserved = 699000000; m->free = 1; m->used = 1000000 + d->gpu;
	return OK;
}

ret nvmlDeviceGetComputeRunningProcesses_v3(dev d, unsigned *n, process *p) {
	unsigned i, want = d->gpu == 1 ? 70 : 0, room = *n;
	*n = want;
	if (want > room) return SMALL;
	for (i = 0; i < want; i++) {
		p[i].pid = 1000 + i; p[i].used = 1 << 20; p[i].gi = p[i].ci = ~0u;
	}
	if (want) p[69].used = ~0ull;
	return OK;
}

ret nvmlDeviceGetGraphicsRunningProcesses_v3(dev d, unsigned *n, process *p) {
	*n = 0;
	if (d->gpu != 1) return OK;
	*n = 2;
	p[0].pid = 1069; p[0].used = ~0ull;
	p[1].pid = 2000; p[1].used = 5 << 20;
	return OK;
}

ret nvmlSystemGetProcessName(unsigned pid, char *s, unsigned n) {
	return pid == 2000 ? put(s, n, "/usr/lib/xorg/Xorg -core :0") : NOTFOUND;
}

ret nvmlDeviceGetMigMode(dev d, unsigned *now, unsigned *later) {
	if (d->gpu == 1) return NOTSUP;
	*now = *later = 1;
	return OK;
}

ret nvmlDeviceGetMaxMigDeviceCount(dev d, unsigned *n) { *n = 7; return OK; }

ret nvmlDeviceGetMigDeviceHandleByIndex(dev d, unsigned i, dev *m) {
	if (i != 0 && i != 3) return NOTFOUND;
	*m = &migs[i == 3];
	return OK;
}

ret nvmlDeviceGetGpuInstanceId(dev d, unsigned *n) { *n = d->mig ? 9 : 2; return OK; }
ret nvmlDeviceGetComputeInstanceId(dev d, unsigned *n) { *n = 0; return OK; }

ret nvmlDeviceGetAttributes_v2(dev d, attrs *a) {
	memset(a, 0xff, sizeof *a);
	a->gpu_slices = a->compute_slices = d->mig ? 1 : 3;
	a->memory_mb = d->mig ? 4864 : 19968;
	return OK;
}
#endif

ret nvmlDeviceGetNvLinkState(dev d, unsigned link, unsigned *active) {
	if (link >= 12) return BAD;
	*active = link < 4;
	return OK;
}

ret nvmlDeviceGetNvLinkRemoteDeviceType(dev d, unsigned link, unsigned *kind) { *kind = 0; return OK; }

ret nvmlDeviceGetNvLinkRemotePciInfo_v2(dev d, unsigned link, pci_info *p) {
	return nvmlDeviceGetPciInfo_v3(&gpus[1 - d->gpu], p);
}

ret nvmlDeviceGetP2PStatus(dev a, dev b, unsigned what, unsigned *state) { *state = 0; return OK; }
