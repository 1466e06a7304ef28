#include "waits.h"

static int factor = 1;

void
wait_factor_set(int f)
{
	factor = f;
}

int
wait_ms(int ms)
{
	return ms * factor;
}
