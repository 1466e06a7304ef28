/*
 * The rest of ipc_table.h, which includes this: the fields of messages at the
 * administrators' sockets, to admind-check, and below sandboxd. No other file
 * includes it.
 */
#ifndef IPC_FIELDS_H
#define IPC_FIELDS_H

/* clang-format off */
#define IPC_FIELDS_login(F, S)                                                    \
F(S, str, username, "as typed")                                                   \
F(S, str, password, "as typed")                                                   \
F(S, str, source, "peer address, for the audit log")                              \
F(S, str, device, "as an earlier LOGIN_OK or a DEVICE_CODE gave it, or empty")    \
F(S, str, agent, "what the browser calls itself, untrusted: for the list of logins")
#define IPC_FIELDS_login_ok(F, S)                                                 \
F(S, str, token, "LOGIN_TEXT characters of base64url; the vault keeps its SHA-256") \
F(S, str, username, "as stored")                                                  \
F(S, str, role, "its role")                                                       \
F(S, u64, expires_ms, "Unix time in ms after which it is over in any case")       \
F(S, u64, idle_ms, "Unix time in ms at which it is over unless it is used before") \
F(S, str, device, "what makes this browser known at its next LOGIN")
#define IPC_FIELDS_logout(F, S) F(S, str, token, "login token")
#define IPC_FIELDS_whoami(F, S) F(S, str, token, "login token")
#define IPC_FIELDS_approve(F, S)                                                  \
F(S, str, token, "login token; empty from CTL, which is uid 0 by SO_PEERCRED")    \
F(S, id, approval, "uuid of the approval request")                                 \
F(S, hash, reviewed, "hash of what was shown, computed by the one that showed it")
#define IPC_FIELDS_reject(F, S)                                                   \
F(S, str, token, "login token; empty from CTL")                                   \
F(S, id, approval, "uuid of the approval request")                                 \
F(S, str, reason, "for the author")
#define IPC_FIELDS_password(F, S)                                                 \
F(S, str, token, "login token")                                                   \
F(S, str, old, "present password")                                                \
F(S, str, new, "12 to 128 characters")
#define IPC_FIELDS_setup(F, S)                                                    \
F(S, str, username, "the first administrator")                                    \
F(S, str, password, "12 to 128 characters")
#define IPC_FIELDS_secret_set(F, S)                                               \
F(S, str, token, "login token of an administrator; empty from CTL")               \
F(S, str, server, "server's name")                                                \
F(S, str, key, "UPPER_SNAKE")                                                     \
F(S, bytes, value, "1 to SECRET_VALUE_MAX bytes")

#define IPC_FIELDS_admin_change(F, S)                                             \
F(S, str, token, "login token of an administrator; empty from CTL")               \
F(S, str, password, "own password of who asks, beside the token; empty from CTL") \
F(S, str, change, "create, password, role or delete")                             \
F(S, str, username, "the administrator it is about")                              \
F(S, str, role, "create, role: administrator, reviewer or viewer")                \
F(S, str, new, "create, password: 12 to 128 characters")
#define IPC_FIELDS_device_make(F, S) F(S, str, username, "whom it is for")
#define IPC_FIELDS_device_code(F, S)                                              \
F(S, str, device, "LOGIN's device, for a short time")                             \
F(S, u64, expires_ms, "Unix time in ms")
#define IPC_FIELDS_logins_get(F, S)                                               \
F(S, str, token, "login token; empty from CTL")                                   \
F(S, str, username, "whose; empty: all. Only an administrator sees others'")
#define IPC_FIELDS_logins(F, S)                                                   \
F(S, blob, json, "{items, next_cursor}: id, username, role, source, agent, created_at, seen_at, expires_at, idle_expires_at, current")
#define IPC_FIELDS_login_end(F, S)                                                \
F(S, str, token, "login token; empty from CTL")                                   \
F(S, id, login, "as LOGINS names it; zero: all of the user")                      \
F(S, str, username, "with a zero id: whose. Only an administrator ends others'")
#define IPC_FIELDS_audit_read(F, S)                                               \
F(S, u64, after, "number of the last row already read, from 0")                   \
F(S, u32, limit, "rows at most")
#define IPC_FIELDS_audit_rows(F, S)                                               \
F(S, u64, seq, "number of the head")                                              \
F(S, hash, head, "its hash")                                                      \
F(S, u64, anchored, "number of the newest row that has an anchor in the database") \
F(S, u32, count, "rows in the blob")                                              \
F(S, blob, rows, "common/crypto/audit_row.h: each row, and the anchors stored with it")
#define IPC_FIELDS_audit_check(F, S)                                              \
F(S, bytes, anchors, "72 bytes each: u64 row number, 32 bytes head, 32 bytes signature")
#define IPC_FIELDS_audit_checked(F, S)                                            \
F(S, bytes, valid, "one byte an anchor, in order: 1 it is ours, 0 it is not")     \
F(S, u64, seq, "the newest row this process signed; 0: none since it started")    \
F(S, hash, head, "its hash")

#define IPC_FIELDS_admin_query(F, S)                                              \
F(S, str, token, "SHA-256 of a login token in base64url; empty from CTL")         \
F(S, str, what, "servers, tools, approvals, audit, executions, modules, settings, status; or server, tool, execution, limits with an id") \
F(S, str, id, "uuid text (limits: or the server's name), or empty for a list")    \
F(S, str, filter_kind, "approvals: tool, module, network, call; tools: server uuid")    \
F(S, str, filter_state, "approvals: pending, approved, rejected, superseded, expired")                 \
F(S, bytes, filters, "TLV: enum admin_filter, text; each at most once (common/admin/admin_filter.h)") \
F(S, str, cursor, "next_cursor of the page before, or empty")                     \
F(S, u32, limit, "1 to 200")
#define IPC_FIELDS_token_create(F, S)                                             \
F(S, str, token, "SHA-256 of an administrator's login token, in base64url; empty from CTL") \
F(S, str, name, "its principal will be token:NAME; no two tokens ever have one")  \
F(S, str, scopes, "tools:read, tools:call, manage, manage:edit; one a line")      \
F(S, str, listeners, "local, tunnel; one a line")                                 \
F(S, str, allow, "patterns of names, one a line")                                 \
F(S, str, deny, "likewise; these win")                                            \
F(S, u64, expires_ms, "Unix time in ms; 0: never")
#define IPC_FIELDS_token_created(F, S)                                            \
F(S, str, secret, "the token itself, of which only the SHA-256 is kept")          \
F(S, blob, json, "the token as REST shows it")
#define IPC_FIELDS_token_revoke(F, S)                                             \
F(S, str, token, "SHA-256 of an administrator's login token, in base64url; empty from CTL") \
F(S, str, which, "uuid text or name")                                             \
F(S, str, reason, "for the record, or empty")
#define IPC_FIELDS_credential_ended(F, S)                                         \
F(S, hash, credential, "SHA-256 of it")                                           \
F(S, str, principal, "whose it was")
#define IPC_FIELDS_admin_action(F, S)                                             \
F(S, str, token, "SHA-256 of a login token in base64url; empty from CTL")         \
F(S, str, action, "name of a row of common/admin/admin_action.def")                     \
F(S, str, id, "what the path names: one id, or two with / between; or empty")     \
F(S, str, key, "Idempotency-Key, or empty: the same key, action and body answer as the first time") \
F(S, hash, seen, "If-Match: hash of what the change was made from; zero: none given") \
F(S, blob, body, "JSON object, closed members, as the sender checked them")
#define IPC_FIELDS_activity_follow(F, S)                                          \
F(S, str, token, "SHA-256 of a login token in base64url; empty from CTL")         \
F(S, u64, stream, "the asker's number for it, not used by another of its streams") \
F(S, u8, calls, "1: also each call's end; 0: the activity log alone")
#define IPC_FIELDS_activity_lines(F, S)                                           \
F(S, u64, dropped, "so many before these were too many")                          \
F(S, bytes, lines, "JSON objects, a line feed behind each")
#define IPC_FIELDS_activity_leave(F, S) F(S, u64, stream, "as ACTIVITY_FOLLOW said")
#define IPC_FIELDS_metrics_get(F, S)
#define IPC_FIELDS_metrics(F, S) F(S, blob, text, "text/plain; version=0.0.4")
#define IPC_FIELDS_export_sign(F, S) F(S, hash, sha256, "of the text")
#define IPC_FIELDS_export_seal(F, S) F(S, bytes, seal, "admind/vault/seals/macs.h, purpose EXPORT")
#define IPC_FIELDS_export_check(F, S)                                             \
F(S, hash, sha256, "of the text")                                                 \
F(S, bytes, seal, "as EXPORT_SEAL gave it")
#define IPC_FIELDS_export(F, S)                                                   \
F(S, str, token, "SHA-256 of an administrator's login token, in base64url; empty from CTL") \
F(S, str, servers, "lines of names, or empty: all")
#define IPC_FIELDS_import(F, S)                                                   \
F(S, str, token, "SHA-256 of an administrator's login token, in base64url; empty from CTL") \
F(S, id, import, "uuid of what import_begin made and import_put filled")          \
F(S, bytes, seal, "as the export's head has it")
#define IPC_FIELDS_admin_json(F, S) F(S, blob, json, "REST object or {items, next_cursor}")
#define IPC_FIELDS_approval_get(F, S)                                             \
F(S, str, token, "SHA-256 of a login token in base64url; empty from CTL")         \
F(S, u8, base, "1: not the request's content, but the version that serves instead of it") \
F(S, id, approval, "uuid")
#define IPC_FIELDS_approval_content(F, S)                                         \
F(S, str, kind, "tool, module, network or call")                                  \
F(S, str, state, "pending or what it became")                                     \
F(S, str, circumstances, "JSON members without braces: server, tool, version, requested_at, requested_by, notes") \
F(S, bytes, seal, "the vault's, of what was approved; else empty")                \
F(S, blob, preimage, "version hash pre-image, kind call: common/request/callreq.h, module and network: common/request/grantreq.h; the reader hashes it itself; empty: there is no base")

#define IPC_FIELDS_key_status(F, S)
#define IPC_FIELDS_key_state(F, S)                                                \
F(S, bytes, key, "8 bytes: id of the key that seals")                             \
F(S, bytes, older, "id of the other one that opens, or empty")                    \
F(S, u8, over, "1: that one is forgotten in a moment, the rotation has ended")   \
F(S, u8, credential, "1: key_file was not read, a credential was")                \
F(S, str, after, "of KEY_STEP: where the next one goes on; empty: the pass is over") \
F(S, u32, seen, "of KEY_STEP: values opened or not")                              \
F(S, u32, renewed, "of KEY_STEP: values now under the new key")                   \
F(S, u32, unreadable, "of KEY_STEP: values that no valid key opens")              \
F(S, str, names, "the first of those, a line each")
#define IPC_FIELDS_key_next(F, S) F(S, fd, file, "the new key's file, open for reading")
#define IPC_FIELDS_key_step(F, S)                                                 \
F(S, u8, renew, "1: renew what is not under the newest key; 0: only open all")    \
F(S, str, after, "KEY_STATE's, or empty to begin a pass")                         \
F(S, u32, limit, "values, 1 to RENEW_MAX")
#define IPC_FIELDS_key_end(F, S) F(S, u32, leave, "so many unreadable values may stay behind")
#define IPC_FIELDS_renew_get(F, S)                                                \
F(S, str, kind, "secret, verifier, version ...: of the view `resting`")           \
F(S, str, after, "id of the last one seen, or empty")                             \
F(S, bytes, key, "id of the key whose values are left out; empty: none is")       \
F(S, u32, limit, "1 to RENEW_MAX")
#define IPC_FIELDS_renew_rows(F, S) F(S, blob, rows, "TLV, enum renew_tag, in order of ids")
#define IPC_FIELDS_renew_store(F, S)                                              \
F(S, str, kind, "as asked")                                                       \
F(S, blob, rows, "TLV: ID, VALUE, RENEWED of each")
#define IPC_FIELDS_renew_phase(F, S)                                              \
F(S, u8, end, "0: a rotation begins; 1: it ends")                                 \
F(S, bytes, key, "8 bytes: the key that seals")                                   \
F(S, u32, leave, "so many values may stay behind")

#define IPC_FIELDS_check_arguments(F, S)                                          \
F(S, u8, output, "1: an outputSchema and a value of any type, not arguments")     \
F(S, u32, schema_len, "bytes of the schema at the front of the blob")             \
F(S, blob, schema_arguments, "schema, then arguments, both JSON")
#define IPC_FIELDS_check_management(F, S)                                         \
F(S, str, tool, "mcpbox_* name")                                                  \
F(S, blob, arguments, "JSON")
#define IPC_FIELDS_check_command(F, S)                                            \
F(S, u32, spec_len, "bytes of the specification at the front of the blob")        \
F(S, blob, spec_schema, "specification, then input schema, both JSON")
#define IPC_FIELDS_check_http(F, S)                                               \
F(S, u8, confirm, "0: not said; 1: false was asked for; 2: true was")             \
F(S, blob, spec, "the specification, JSON")
#define IPC_FIELDS_check_openapi(F, S)                                            \
F(S, str, base_url, "in the place of the document's servers, or empty")           \
F(S, u32, document_len, "bytes of the document at the front of the blob")         \
F(S, blob, document_operations, "OpenAPI 3 as JSON, then the operations that are wanted, one a line (operationId, or \"get /path\"); none: all")
#define IPC_FIELDS_check_render(F, S)                                             \
F(S, u32, text_len, "bytes of the template at the front of the blob")             \
F(S, blob, text_arguments, "template, then the arguments object")
#define IPC_FIELDS_check_ok(F, S)                                                 \
F(S, bytes, kept, "of CHECK_ARGUMENTS and CHECK_MANAGEMENT: the arguments as records keep them (common/scan/kept.h), or empty: as they are") \
F(S, blob, fields, "TLV of the fields asked for, or empty")
#define IPC_FIELDS_check_errors(F, S)                                             \
F(S, u16, failure, "enum failure")                                                \
F(S, str, summary, "one sentence")                                                \
F(S, blob, json, "array of {pointer, message}")
#define IPC_FIELDS_check_inspection(F, S) F(S, blob, json, "what the runner answered")

#define IPC_FIELDS_pool_start(F, S) F(S, u64, generation, "new for each pool")
#define IPC_FIELDS_pool_started(F, S)                                             \
F(S, u64, generation, "as asked")                                                 \
F(S, u32, uids, "ids 1 to this are the runners', inside the pool")                \
F(S, fd, channel, "socket whose other end pool-init holds")
#define IPC_FIELDS_store_put(F, S)                                                \
F(S, id, execution, "of the installer that sends it: one tree each")              \
F(S, u8, last, "1: the tree ends behind these bytes")                             \
F(S, bytes, data, "foreign: any bytes, cut anywhere")
#define IPC_FIELDS_stored(F, S)                                                   \
F(S, hash, digest, "the entry's name: computed by the store from what it wrote")  \
F(S, u64, files, "files in it")                                                   \
F(S, u64, size, "bytes of them")                                                  \
F(S, u8, fresh, "1: it was not there before")
#define IPC_FIELDS_store_drop(F, S) F(S, id, execution, "as STORE_PUT said")
#define IPC_FIELDS_store_ask(F, S) F(S, bytes, digests, "32 bytes each, STORE_ASK_MAX at most")
#define IPC_FIELDS_store_says(F, S) F(S, bytes, there, "one byte a digest, in order: 1 it is, 0 it is not")
#define IPC_FIELDS_module_stored(F, S)                                            \
F(S, id, execution, "the run")                                                    \
F(S, hash, digest, "as STORED said")                                              \
F(S, u64, files, "likewise")                                                      \
F(S, u64, size, "likewise")
#define IPC_FIELDS_fork(F, S)                                                     \
F(S, u32, slot, "0 to slots-1")                                                   \
F(S, u64, generation, "of this use of the slot")                                  \
F(S, u32, uid, "uid and gid inside the pool's user namespace")                    \
F(S, u8, kind, "enum runner_kind: which root and which filter")                   \
F(S, u8, network, "1: hosts are granted: connect(2) raises a notification, and the listener goes to peek under `generation`") \
F(S, u64, tmp_bytes, "of /tmp")                                                   \
F(S, u32, tmp_inodes, "of /tmp")                                                  \
F(S, u64, memory_bytes, "of the slot's cgroup, where there is one: of all the processes together") \
F(S, u32, processes, "of the slot's cgroup: processes and threads")               \
F(S, u32, cpu_percent, "of the slot's cgroup: share of one processor")            \
F(S, bytes, modules, "digests of module trees to mount, 32 bytes each, sorted")   \
F(S, fd, channel, "the runner's end of its channel")
#define IPC_FIELDS_forked(F, S)                                                   \
F(S, u32, slot, "as asked")                                                       \
F(S, u64, generation, "as asked")                                                 \
F(S, fd, pidfd, "of the runner")
#define IPC_FIELDS_fork_failed(F, S)                                              \
F(S, u32, slot, "as asked")                                                       \
F(S, u64, generation, "as asked")                                                 \
F(S, u32, error, "errno")                                                         \
F(S, str, step, "what failed")
#define IPC_FIELDS_kill(F, S)                                                     \
F(S, u32, slot, "slot")                                                           \
F(S, u64, generation, "of this use of the slot; another one is ignored")
#define IPC_FIELDS_exited(F, S)                                                   \
F(S, u32, slot, "slot")                                                           \
F(S, u64, generation, "of this use of the slot")                                  \
F(S, u32, status, "wait status, as waitid gave it: code << 16 | status")          \
F(S, u64, cpu_us, "user and system time, of the whole cgroup where there is one") \
F(S, u64, peak_kib, "largest resident set of one process")                        \
F(S, u64, memory_peak, "bytes the cgroup held at most; 0: not known")             \
F(S, u32, oom_kills, "processes the kernel killed because the cgroup's memory was used up")
#define IPC_FIELDS_pool_report(F, S)                                              \
F(S, str, interpreter, "cache tag and version of its Python: compiled code is good for this one only") \
F(S, str, layers, "name=enforced|degraded|missing lines")
#define IPC_FIELDS_recycle(F, S)
#define IPC_FIELDS_leaf(F, S)                                                     \
F(S, u32, slot, "slot")                                                           \
F(S, fd, directory, "the cgroup's directory")
#define IPC_FIELDS_limit(F, S)                                                    \
F(S, u32, slot, "slot")                                                           \
F(S, u64, generation, "of this use of the slot; another one is ignored")          \
F(S, u64, memory_bytes, "of all the processes together")                          \
F(S, u32, processes, "processes and threads")                                     \
F(S, u32, cpu_percent, "share of one processor")
#define IPC_FIELDS_limited(F, S)                                                  \
F(S, u32, slot, "as asked")                                                       \
F(S, u64, generation, "as asked")                                                 \
F(S, u32, error, "0, or errno: the runner must not get its call")

#define IPC_FIELDS_ready(F, S)
#define IPC_FIELDS_confine_failed(F, S)                                           \
F(S, str, step, "name of the step")                                               \
F(S, str, path, "path, or empty")                                                 \
F(S, u32, error, "errno")
#define IPC_FIELDS_execute(F, S)                                                  \
F(S, u8, kind, "enum context_kind: run main, inspect, or compile only")           \
F(S, u8, form, "enum call_method: which result main's value becomes")             \
F(S, u8, driver, "enum runner_driver: what the code is")                          \
F(S, u8, network, "1: its version declares hosts. It opens nothing; errors tell") \
F(S, str, name, "exposed name, shown in tracebacks")                              \
F(S, u64, memory_bytes, "address space of each process")                          \
F(S, u64, cpu_ms, "CPU time of each process")                                     \
F(S, u32, processes, "processes and threads")                                     \
F(S, u32, files, "open descriptors of each process")                              \
F(S, u64, file_bytes, "largest file")                                             \
F(S, u32, stdout_max, "bytes of output to send")                                  \
F(S, u32, result_max, "bytes of result to send")                                  \
F(S, str, executable, "kind COMMAND: path of what is run, else empty")            \
F(S, bytes, executable_digest, "kind COMMAND: SHA-256 it must have; empty: any, for an inspection") \
F(S, u32, source_len, "bytes of the source at the front of the blob")             \
F(S, blob, code, "Python source or a command's spec, UTF-8; then its compiled form or nothing")
#define IPC_FIELDS_arguments(F, S) F(S, blob, json, "an object")
#define IPC_FIELDS_answer(F, S)                                                   \
F(S, u32, number, "of the ASK")                                                   \
F(S, blob, json, "{key: {\"result\": ...} or {\"error\": ...}}")
#define IPC_FIELDS_secrets(F, S) F(S, blob, tlv, "name, value, name, value ... (tags 1 and 2)")
#define IPC_FIELDS_stdout(F, S) F(S, bytes, data, "as printed, any bytes")
#define IPC_FIELDS_log(F, S)                                                      \
F(S, u8, level, "0 debug to 7 emergency, RFC 5424 reversed as MCP orders them")   \
F(S, bytes, json, "any JSON value")
#define IPC_FIELDS_progress(F, S) F(S, bytes, json, "object: progress, total?, message?")
#define IPC_FIELDS_module_part(F, S)                                              \
F(S, u8, last, "1: the tree ends behind these bytes")                             \
F(S, bytes, data, "see sandboxd/store/tree.h")
#define IPC_FIELDS_module_next(F, S)                                              \
F(S, u8, state, "0 go on, 1 stored, 2 refused: nothing of it is kept")            \
F(S, hash, digest, "stored: the entry's")                                         \
F(S, u64, files, "stored: files in it")                                           \
F(S, u64, size, "stored: bytes of them")                                          \
F(S, str, text, "refused: why")
#define IPC_FIELDS_content_part(F, S) F(S, bytes, data, "next bytes")
#define IPC_FIELDS_ask(F, S)                                                      \
F(S, u32, number, "1, 2, 3 ... within the call")                                  \
F(S, bytes, json, "object: {key: {method, params}}")
#define IPC_FIELDS_pause(F, S) F(S, u32, retry_ms, "come back not before that")

#define IPC_FIELDS_policy_set(F, S)                                               \
F(S, str, token, "login token of an administrator; empty from CTL")               \
F(S, u8, tool, "enum review_mode")                                                \
F(S, u8, module, "enum review_mode")                                              \
F(S, u8, network, "enum review_mode")                                             \
F(S, u32, days, "an automatic mode ends after so many; 1 to 90")                  \
F(S, hash, seen, "POLICY_STATE's seal that the change was made from; zero: of no policy")
#define IPC_FIELDS_policy_get(F, S) F(S, str, token, "login token; empty from CTL")
#define IPC_FIELDS_policy_state(F, S)                                             \
F(S, u8, tool, "enum review_mode")                                                \
F(S, u8, module, "enum review_mode")                                              \
F(S, u8, network, "enum review_mode")                                             \
F(S, str, actor, "who set it, or empty")                                          \
F(S, u64, since_us, "Unix time in us; 0: there is none, the default holds")       \
F(S, u64, until_us, "end of its automatic modes, 0: it has none")                 \
F(S, hash, seal, "SHA-256 of the sealed policy, zero if there is none")
#define IPC_FIELDS_policy_load(F, S)
#define IPC_FIELDS_policy_sealed(F, S) F(S, bytes, seal, "as POLICY_STORE brought it; empty: there is none")
#define IPC_FIELDS_policy_store(F, S)                                             \
F(S, u8, tool, "enum review_mode")                                                \
F(S, u8, module, "enum review_mode")                                              \
F(S, u8, network, "enum review_mode")                                             \
F(S, str, actor, "administrator's name, or root")                                 \
F(S, u64, serial, "Unix time in us, later than the one before")                   \
F(S, u64, until_us, "as in POLICY_STATE")                                         \
F(S, bytes, seal, "the sealed policy")
#define IPC_FIELDS_approve_auto(F, S) F(S, id, approval, "uuid of the approval request")
#define IPC_FIELDS_half_approved(F, S)
#define IPC_FIELDS_seal_verify(F, S)                                              \
F(S, str, token, "login token; empty from CTL")                                   \
F(S, u32, seal_len, "bytes of the seal at the front of the blob")                 \
F(S, blob, seal_preimage, "seal, then pre-image")
#define IPC_FIELDS_seal_says(F, S)                                                \
F(S, id, about, "the request that was approved")                                            \
F(S, str, approver, "administrator, root, or policy:NAME")                        \
F(S, str, first, "who said the first yes of two, or empty")                       \
F(S, u64, time_us, "Unix time in us")
#define IPC_FIELDS_net_open(F, S)                                                 \
F(S, u64, net, "generation of the runner's slot: not used twice in a life of sandboxd") \
F(S, id, execution, "for the log")                                                \
F(S, u32, connections, "limit: connections in all")                               \
F(S, u64, bytes, "limit: both directions together")                               \
F(S, u64, bytes_minute, "limit: likewise, in a minute")                           \
F(S, u32, requires_len, "bytes of the version's own list at the front of the blob") \
F(S, blob, hosts, "what the version declares, then what its server is granted: each a list of lines as common/request/netgrant.h spells them; both must cover a connection")
#define IPC_FIELDS_net_grants(F, S)                                               \
F(S, u64, net, "as opened")                                                       \
F(S, blob, grants, "lines: replaces the second list of NET_OPEN")
#define IPC_FIELDS_net_close(F, S) F(S, u64, net, "as opened")
#define IPC_FIELDS_net_report(F, S)                                               \
F(S, u64, net, "as opened")                                                       \
F(S, u64, bytes, "of all connections, both directions")                           \
F(S, u32, connections, "made or tried")                                           \
F(S, u32, refused, "by policy")                                                   \
F(S, bytes, json, "array, NET_REPORT_MAX bytes at most: {host, address, port, protocol, verdict, reason, bytes_in, bytes_out, started_ms, duration_ms}")
#define IPC_FIELDS_net_event(F, S)                                                \
F(S, u64, net, "as opened")                                                       \
F(S, u8, kind, "enum net_event")                                                  \
F(S, str, host, "name or address that was wanted, or empty")                      \
F(S, u16, port, "likewise, or 0")                                                 \
F(S, str, text, "one sentence: why, and what to do")
#define IPC_FIELDS_net_connect(F, S)                                              \
F(S, u64, net, "of the listener it came by, never from the runner")               \
F(S, u16, family, "of the runner's socket: AF_INET or AF_INET6")                  \
F(S, u16, type, "SOCK_STREAM or SOCK_DGRAM")                                      \
F(S, u8, nonblocking, "1: do not wait until it is connected")                     \
F(S, bytes, address, "struct sockaddr as copied once, 128 bytes at most: foreign")
#define IPC_FIELDS_net_connected(F, S)                                            \
F(S, u32, error, "0: connected; EINPROGRESS: it is connecting")                   \
F(S, fd, socket, "non-blocking; peek sets what the runner's had")
#define IPC_FIELDS_net_failed(F, S) F(S, u32, error, "errno")
#define IPC_FIELDS_peek_link(F, S) F(S, fd, link, "connected to egress")
#define IPC_FIELDS_peek_door(F, S) F(S, fd, door, "SOCK_SEQPACKET")
#define IPC_FIELDS_listener(F, S)                                                 \
F(S, u64, net, "generation, from FORK")                                           \
F(S, fd, listener, "seccomp_unotify(2)")
#define IPC_FIELDS_regrant(F, S)                                                  \
F(S, id, server, "uuid; the execution of the binding")                            \
F(S, blob, context, "sealed, kind CONTEXT_GRANTS: CTX_GRANT lines")
#define IPC_FIELDS_source_run(F, S)                                               \
F(S, str, token, "SHA-256 of a login token in base64url; empty from CTL")         \
F(S, id, source, "uuid")                                                          \
F(S, u8, op, "enum source_op")                                                    \
F(S, blob, text, "of IMPORT names of tools, one a line; of AUTHORISE the redirect URI")
#define IPC_FIELDS_openapi_import(F, S)                                           \
F(S, str, token, "SHA-256 of a login token in base64url; empty from CTL")         \
F(S, id, server, "uuid")                                                          \
F(S, str, base_url, "as for CHECK_OPENAPI")                                       \
F(S, u32, document_len, "likewise")                                               \
F(S, blob, document_operations, "likewise")
#define IPC_FIELDS_oauth_callback(F, S)                                           \
F(S, str, state, "from the query: foreign")                                       \
F(S, str, code, "likewise, or empty")                                             \
F(S, str, iss, "likewise (RFC 9207), or empty")                                   \
F(S, str, error, "likewise, or empty")
#define IPC_FIELDS_credential_store(F, S)                                         \
F(S, id, execution, "of the run")                                                 \
F(S, hash, version, "that ran")                                                   \
F(S, str, server, "its server's name")                                            \
F(S, str, key, "the secret it becomes")                                           \
F(S, blob, sealed, "by the runner, under the key that the context alone held (decision 0051)")
#define IPC_FIELDS_run_result(F, S) F(S, u32, length, "bytes in all the pieces")
#define IPC_FIELDS_run_error(F, S)                                                \
F(S, u16, failure, "FAILURE_EXCEPTION, FAILURE_BAD_CODE, FAILURE_INVALID_ARGUMENTS, FAILURE_LIMIT, FAILURE_NO_ANSWER, FAILURE_TOOL_PROTOCOL, FAILURE_MISSING_GRANT, FAILURE_TIMEOUT, FAILURE_UPSTREAM or FAILURE_UPSTREAM_CHANGED") \
F(S, u32, length, "bytes in all the pieces")
/* clang-format on */

#endif
