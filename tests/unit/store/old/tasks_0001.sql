BEGIN TRANSACTION;
CREATE TABLE audit (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	at DATETIME NOT NULL, 
	actor TEXT NOT NULL, 
	action TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	detail TEXT NOT NULL
);
INSERT INTO "audit" VALUES(1,'2026-11-30 12:00:00.123456','flora','task.stopped','x','');
CREATE TABLE blobs (
	sha256 VARCHAR(64) NOT NULL, 
	data BLOB NOT NULL, 
	CONSTRAINT pk_blobs PRIMARY KEY (sha256)
);
INSERT INTO "blobs" VALUES('bf0bce92a1d8325517d4183e8f7a1c9cde1211780a848b670d4669dfbcc456e5',X'7B22726F6C65223A2275736572222C227061727473223A5B7B226B696E64223A22726573756C74222C2263616C6C5F6964223A2263222C2274657874223A227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878222C2269735F6572726F72223A66616C73657D5D7D');
CREATE TABLE buckets (
	name TEXT NOT NULL, 
	capacity FLOAT NOT NULL, 
	tokens FLOAT NOT NULL, 
	updated_at DATETIME NOT NULL, 
	CONSTRAINT pk_buckets PRIMARY KEY (name)
);
CREATE TABLE decisions (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	task_id VARCHAR(32) NOT NULL, 
	run INTEGER NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	question TEXT NOT NULL, 
	comment_id BIGINT, 
	verdict VARCHAR(16), 
	actor_id BIGINT, 
	actor TEXT, 
	reason TEXT NOT NULL, 
	asked_at DATETIME NOT NULL, 
	at DATETIME, 
	used_at DATETIME, 
	CONSTRAINT fk_decisions_task_id_run FOREIGN KEY(task_id, run) REFERENCES runs (task_id, seq)
);
CREATE TABLE effects (
	task_id VARCHAR(32) NOT NULL, 
	slot TEXT NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	remote_id TEXT NOT NULL, 
	CONSTRAINT pk_effects PRIMARY KEY (task_id, slot), 
	CONSTRAINT fk_effects_task_id FOREIGN KEY(task_id) REFERENCES tasks (id)
);
INSERT INTO "effects" VALUES('00000000000000000000006669727374','pull','pull','8');
CREATE TABLE events (
	task_id VARCHAR(32) NOT NULL, 
	seq INTEGER NOT NULL, 
	run INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	kind VARCHAR(64) NOT NULL, 
	data TEXT, 
	blob VARCHAR(64), 
	at DATETIME NOT NULL, 
	CONSTRAINT pk_events PRIMARY KEY (task_id, seq), 
	CONSTRAINT fk_events_blob FOREIGN KEY(blob) REFERENCES blobs (sha256), 
	CONSTRAINT fk_events_task_id_run FOREIGN KEY(task_id, run) REFERENCES runs (task_id, seq), 
	CONSTRAINT uq_events_task_id_key UNIQUE (task_id, "key")
);
INSERT INTO "events" VALUES('00000000000000000000006669727374',1,1,'run/1/queued','run.queued','{"requester":"flora","request":"","position":0}',NULL,'2026-11-30 12:00:00.123456');
INSERT INTO "events" VALUES('00000000000000000000006669727374',2,1,'turn/1/tool/0','tool.finished','{"turn":1,"index":0,"name":"run","summary":"ls","is_error":false,"seconds":0.5,"command":"ls","exit_code":0,"output":"a"}',NULL,'2026-11-30 12:00:00.123456');
INSERT INTO "events" VALUES('00000000000000000000006669727374',3,2,'run/2/queued','run.queued','{"requester":"flora","request":"all","position":0}',NULL,'2026-11-30 12:00:00.123456');
CREATE TABLE executors (
	id TEXT NOT NULL, 
	host TEXT NOT NULL, 
	pid INTEGER NOT NULL, 
	started_at DATETIME NOT NULL, 
	seen_at DATETIME NOT NULL, 
	CONSTRAINT pk_executors PRIMARY KEY (id)
);
CREATE TABLE inbox (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	task_id VARCHAR(32) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	author TEXT NOT NULL, 
	text TEXT NOT NULL, 
	number INTEGER, 
	thread VARCHAR(8), 
	comment_id BIGINT, 
	event_key TEXT NOT NULL, 
	at DATETIME NOT NULL, 
	CONSTRAINT fk_inbox_task_id FOREIGN KEY(task_id) REFERENCES tasks (id), 
	CONSTRAINT uq_inbox_event_key UNIQUE (event_key)
);
INSERT INTO "inbox" VALUES(1,'00000000000000000000006669727374','steer','bea','and the tulips',7,'issue',NULL,'third','2026-11-30 12:00:00.123459');
CREATE TABLE issuewright_tasks_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT issuewright_tasks_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "issuewright_tasks_version" VALUES('tasks_0001');
CREATE TABLE keys (
	name TEXT NOT NULL, 
	value BLOB NOT NULL, 
	CONSTRAINT pk_keys PRIMARY KEY (name)
);
INSERT INTO "keys" VALUES('state',X'000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F');
CREATE TABLE messages (
	task_id VARCHAR(32) NOT NULL, 
	run INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	role VARCHAR(16) NOT NULL, 
	content TEXT, 
	blob VARCHAR(64), 
	CONSTRAINT pk_messages PRIMARY KEY (task_id, run, position), 
	CONSTRAINT fk_messages_blob FOREIGN KEY(blob) REFERENCES blobs (sha256), 
	CONSTRAINT fk_messages_task_id_run FOREIGN KEY(task_id, run) REFERENCES runs (task_id, seq)
);
INSERT INTO "messages" VALUES('00000000000000000000006669727374',1,0,'user','{"role":"user","parts":[{"kind":"text","text":"Water the roses \ud83c\udf39"}]}',NULL);
INSERT INTO "messages" VALUES('00000000000000000000006669727374',1,1,'assistant','{"role":"assistant","parts":[{"kind":"call","id":"c","name":"run","arguments":"{\"a\": 1 }"}]}',NULL);
INSERT INTO "messages" VALUES('00000000000000000000006669727374',1,2,'user',NULL,'bf0bce92a1d8325517d4183e8f7a1c9cde1211780a848b670d4669dfbcc456e5');
CREATE TABLE runs (
	task_id VARCHAR(32) NOT NULL, 
	seq INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	outcome VARCHAR(16), 
	reason TEXT NOT NULL, 
	request TEXT NOT NULL, 
	requester TEXT NOT NULL, 
	requester_id BIGINT NOT NULL, 
	model TEXT, 
	comment_id BIGINT, 
	event_key TEXT NOT NULL, 
	executor TEXT, 
	abi INTEGER NOT NULL, 
	created_at DATETIME NOT NULL, 
	started_at DATETIME, 
	finished_at DATETIME, 
	CONSTRAINT pk_runs PRIMARY KEY (task_id, seq), 
	CONSTRAINT fk_runs_task_id FOREIGN KEY(task_id) REFERENCES tasks (id), 
	CONSTRAINT uq_runs_event_key UNIQUE (event_key)
);
INSERT INTO "runs" VALUES('00000000000000000000006669727374',1,7,'issue','finished','waiting','Which roses?','','flora',6000000000,NULL,NULL,'first','e1',1,'2026-11-30 12:00:00.123456','2026-11-30 12:00:00.123457','2026-11-30 12:00:00.123456');
INSERT INTO "runs" VALUES('00000000000000000000006669727374',2,7,'issue','running',NULL,'','all','flora',6000000000,NULL,NULL,'second','e1',1,'2026-11-30 12:00:00.123456','2026-11-30 12:00:00.123458',NULL);
CREATE TABLE steps (
	run_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	output TEXT NOT NULL, 
	CONSTRAINT pk_steps PRIMARY KEY (run_id, name)
);
INSERT INTO "steps" VALUES('00000000000000000000006669727374-1','turn/1','{"ok": true}');
CREATE TABLE tasks (
	id VARCHAR(32) NOT NULL, 
	repository_id BIGINT NOT NULL, 
	full_name TEXT NOT NULL, 
	default_branch TEXT, 
	private BOOLEAN NOT NULL, 
	number INTEGER NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	title TEXT NOT NULL, 
	body TEXT NOT NULL, 
	requester TEXT NOT NULL, 
	installation_id BIGINT, 
	branch TEXT NOT NULL, 
	base_branch TEXT NOT NULL, 
	pull_number INTEGER, 
	created_at DATETIME NOT NULL, 
	CONSTRAINT pk_tasks PRIMARY KEY (id)
);
INSERT INTO "tasks" VALUES('00000000000000000000006669727374',5000000000,'octo/garden','main',1,7,'issue','Water the roses','They are dry.','flora',11,'agent/7-0123abcd','main',8,'2026-11-30 12:00:00.123456');
CREATE TABLE threads (
	repository_id BIGINT NOT NULL, 
	number INTEGER NOT NULL, 
	task_id VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_threads PRIMARY KEY (repository_id, number), 
	CONSTRAINT fk_threads_task_id FOREIGN KEY(task_id) REFERENCES tasks (id)
);
INSERT INTO "threads" VALUES(5000000000,7,'00000000000000000000006669727374');
INSERT INTO "threads" VALUES(5000000000,8,'00000000000000000000006669727374');
CREATE INDEX ix_tasks_created_at ON tasks (created_at);
CREATE INDEX ix_tasks_installation_id ON tasks (installation_id);
CREATE INDEX ix_threads_task_id ON threads (task_id);
CREATE INDEX ix_runs_state_created_at ON runs (state, created_at);
CREATE UNIQUE INDEX uq_runs_open ON runs (task_id) WHERE state != 'finished';
CREATE INDEX ix_messages_blob ON messages (blob);
CREATE INDEX ix_events_blob ON events (blob);
CREATE INDEX ix_inbox_task_id_id ON inbox (task_id, id);
CREATE INDEX ix_decisions_task_id_hash ON decisions (task_id, hash);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('inbox',1);
INSERT INTO "sqlite_sequence" VALUES('audit',1);
COMMIT;
