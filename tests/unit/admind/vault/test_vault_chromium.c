/*
 * Two passkeys that Chromium 156 made and used, as its toJSON() wrote them
 * (tests/browser/test_passkeys.py, with fixed challenge and user id). The first
 * has a maker's attestation, and the member that Chromium adds to the client
 * data of one ceremony in five.
 */
#include "unit.h"

#include "ceremony.h"
#include "ids.h"

static const struct recorded {
	int alg;
	bool more; /* the additional member */
	const char *created, *object;
	const char *got, *auth, *signature, *handle;
} rows[] = {
    {AUTHKEY_ES256, true,
	"eyJ0eXBlIjoid2ViYXV0aG4uY3JlYXRlIiwiY2hhbGxlbmdlIjoiQVFJREJBVUdCd2"
	"dKQ2dzTURRNFBFQkVTRXhRVkZoY1lHUm9iSEIwZUh5QSIsIm9yaWdpbiI6Imh0dHA6"
	"Ly9sb2NhbGhvc3Q6MzI4MzkiLCJjcm9zc09yaWdpbiI6ZmFsc2UsIm90aGVyX2tleX"
	"NfY2FuX2JlX2FkZGVkX2hlcmUiOiJkbyBub3QgY29tcGFyZSBjbGllbnREYXRhSlNP"
	"TiBhZ2FpbnN0IGEgdGVtcGxhdGUuIFNlZSBodHRwczovL2dvby5nbC95YWJQZXgifQ",
	"o2NmbXRmcGFja2VkZ2F0dFN0bXSjY2FsZyZjc2lnWEgwRgIhAPGYrbYSYad2dA38o_"
	"ETBjcGvoR-vQopoqgPCtsdXh37AiEAsmqQzgjlwJw6RCfxs1k_CvUDVnwdlIy4X34p"
	"0PUqnVVjeDVjgVkB1zCCAdMwggF6oAMCAQICAQEwCgYIKoZIzj0EAwIwYDELMAkGA1"
	"UEBhMCVVMxETAPBgNVBAoMCENocm9taXVtMSIwIAYDVQQLDBlBdXRoZW50aWNhdG9y"
	"IEF0dGVzdGF0aW9uMRowGAYDVQQDDBFCYXRjaCBDZXJ0aWZpY2F0ZTAeFw0xNzA3MT"
	"QwMjQwMDBaFw00NjExMjIwNjIwMDBaMGAxCzAJBgNVBAYTAlVTMREwDwYDVQQKDAhD"
	"aHJvbWl1bTEiMCAGA1UECwwZQXV0aGVudGljYXRvciBBdHRlc3RhdGlvbjEaMBgGA1"
	"UEAwwRQmF0Y2ggQ2VydGlmaWNhdGUwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASN"
	"YX5lyVCOZLzFZzrIKmeZ2jwURmgsJYxGP__fWN_S-j5sN4tT15XEpN_7QZnt14YvI6"
	"uvAgO0uJEboFaZlOEBoyUwIzAMBgNVHRMBAf8EAjAAMBMGCysGAQQBguUcAgEBBAQD"
	"AgMIMAoGCCqGSM49BAMCA0cAMEQCIB00L0_J92IpXeKV54vrHAhoItWQ_UozeOMMq_"
	"nIs2S2AiArVHaSBjYaaCQhV94r4y0Sc603cNB7d8psb3TTUjYiXGhhdXRoRGF0YVik"
	"SZYN5YgOjGh0NBcPZHZgW4_krrmihjLHmVzzuoMdl2NFAAAAAQECAwQFBgcIAQIDBA"
	"UGBwgAIPemqqUoBYkALACrSRZgbn65Acaa0vsUBbQs2kW-IgS_pQECAyYgASFYIMqj"
	"l2czIkw_tatFoolrCFVLzeTbn6VSxsAHUvGA6eVsIlgg-AZ80pdFflLK8JOSyRmwZB"
	"MDj2yafVZOXBPraDxSFuo",
	"eyJ0eXBlIjoid2ViYXV0aG4uZ2V0IiwiY2hhbGxlbmdlIjoiQVFJREJBVUdCd2dKQ2"
	"dzTURRNFBFQkVTRXhRVkZoY1lHUm9iSEIwZUh5QSIsIm9yaWdpbiI6Imh0dHA6Ly9s"
	"b2NhbGhvc3Q6MzI4MzkiLCJjcm9zc09yaWdpbiI6ZmFsc2UsIm90aGVyX2tleXNfY2"
	"FuX2JlX2FkZGVkX2hlcmUiOiJkbyBub3QgY29tcGFyZSBjbGllbnREYXRhSlNPTiBh"
	"Z2FpbnN0IGEgdGVtcGxhdGUuIFNlZSBodHRwczovL2dvby5nbC95YWJQZXgifQ",
	"SZYN5YgOjGh0NBcPZHZgW4_krrmihjLHmVzzuoMdl2MFAAAAAg",
	"MEQCIH7gvlp29Q6nYnRr2jP5-Kb7Um_VBjcd9arY9WGTmU9TAiBPc3PD2Ekdd5hlXb"
	"qBzbo4MQBkBTldLUowtu44M_Omog",
	"AAECAwQFBgcICQoLDA0ODw"},
    {AUTHKEY_EDDSA, false,
	"eyJ0eXBlIjoid2ViYXV0aG4uY3JlYXRlIiwiY2hhbGxlbmdlIjoiQVFJREJBVUdCd2"
	"dKQ2dzTURRNFBFQkVTRXhRVkZoY1lHUm9iSEIwZUh5QSIsIm9yaWdpbiI6Imh0dHA6"
	"Ly9sb2NhbGhvc3Q6MzI4MzkiLCJjcm9zc09yaWdpbiI6ZmFsc2V9",
	"o2NmbXRkbm9uZWdhdHRTdG10oGhhdXRoRGF0YViBSZYN5YgOjGh0NBcPZHZgW4_krr"
	"mihjLHmVzzuoMdl2NFAAAAAQECAwQFBgcIAQIDBAUGBwgAIJ0LSKvA4NgOQILO2NSL"
	"ieopkF79uWXVJ86cRMcuk2zopAEBAycgBiFYILueoWT_HbQ3VlPDDgNgd-8KzxWd5Y"
	"wBLHqy_kBFeZR3",
	"eyJ0eXBlIjoid2ViYXV0aG4uZ2V0IiwiY2hhbGxlbmdlIjoiQVFJREJBVUdCd2dKQ2"
	"dzTURRNFBFQkVTRXhRVkZoY1lHUm9iSEIwZUh5QSIsIm9yaWdpbiI6Imh0dHA6Ly9s"
	"b2NhbGhvc3Q6MzI4MzkiLCJjcm9zc09yaWdpbiI6ZmFsc2V9",
	"SZYN5YgOjGh0NBcPZHZgW4_krrmihjLHmVzzuoMdl2MFAAAAAg",
	"Uyd9OC_ugWz3X6I0fXZtDcq4d4xx6sPO3FVAwv_0Iz3CfHJ-QiAfqOy553RncqoadS"
	"ralkuBvbce5di8CYZ5DA",
	"AAECAwQFBgcICQoLDA0ODw"},
};

/* The challenge has the bytes 1 to 32, the handle 0 to 15. */
static struct ceremony
asked(void)
{
	struct ceremony c = {"localhost", "http://localhost:32839", {0}};

	for (size_t i = 0; i < sizeof(c.challenge); i++)
		c.challenge[i] = (uint8_t)(i + 1);
	return c;
}

static struct ipc_bytes
decoded(const char *text, uint8_t *to)
{
	long n = b64url_decode(text, strlen(text), to);

	assert_true(n > 0);
	return ipc_bytes(to, (size_t)n);
}

static void
recorded_ones_do(void **state)
{
	struct ceremony c = asked();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t client[1024], object[2048], auth[64], sig[128], id[32];
		struct ipc_bytes said = decoded(rows[i].created, client);
		struct passkeys set = {0};
		struct ceremony_answer a;
		struct authdata d;
		uint32_t count;
		bool cloned;
		struct err err;

		for (size_t b = 0; b < sizeof(set.handle.b); b++)
			set.handle.b[b] = (uint8_t)b;
		assert_int_equal(
		    memmem(said.p, said.n, "other_keys_", 11) != NULL,
		    rows[i].more);
		assert_int_equal(ceremony_register(&c, said,
				     decoded(rows[i].object, object), &d, &err),
		    0);
		assert_int_equal(d.key.alg, rows[i].alg);
		assert_int_equal(d.sign_count, 1);
		assert_non_null(passkeys_add(&set, &d, &err));
		a = (struct ceremony_answer){
		    .client_data = decoded(rows[i].got, client),
		    .auth_data = decoded(rows[i].auth, auth),
		    .signature = decoded(rows[i].signature, sig),
		    .handle = decoded(rows[i].handle, id)};
		assert_int_equal(ceremony_assert(&c, &a, &set.row[0],
				     &set.handle, &count, &cloned, &err),
		    0);
		assert_true(count > 1);
		/* Each byte is signed. */
		for (size_t b = 0; b < a.client_data.n; b++) {
			client[b] ^= 1;
			assert_int_equal(
			    ceremony_assert(&c, &a, &set.row[0], &set.handle,
				&count, &cloned, &err),
			    -1);
			client[b] ^= 1;
		}
		for (size_t b = 0; b < a.auth_data.n; b++) {
			auth[b] ^= 1;
			assert_int_equal(
			    ceremony_assert(&c, &a, &set.row[0], &set.handle,
				&count, &cloned, &err),
			    -1);
			auth[b] ^= 1;
		}
	}
}

static void
another_origin_does_not(void **state)
{
	struct ceremony c = asked();
	uint8_t client[1024], object[2048];
	struct authdata d;
	struct err err;

	(void)state;
	c.origins = "http://localhost:8000";
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(
		    ceremony_register(&c, decoded(rows[i].created, client),
			decoded(rows[i].object, object), &d, &err),
		    -1);
		assert_int_equal(err.failure, FAILURE_PASSKEY_REFUSED);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(recorded_ones_do),
	    cmocka_unit_test(another_origin_does_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
