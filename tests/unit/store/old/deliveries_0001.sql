BEGIN TRANSACTION;
CREATE TABLE deliveries (
	guid TEXT NOT NULL, 
	event_key TEXT, 
	event TEXT NOT NULL, 
	body BLOB NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	note TEXT NOT NULL, 
	received_at DATETIME NOT NULL, 
	CONSTRAINT pk_deliveries PRIMARY KEY (guid), 
	CONSTRAINT uq_deliveries_event_key UNIQUE (event_key)
);
INSERT INTO "deliveries" VALUES('guid-1','key-1','issues',X'00FF7B7D677569642D31','received','','2026-11-30 12:00:00.123456');
CREATE TABLE issuewright_deliveries_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT issuewright_deliveries_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "issuewright_deliveries_version" VALUES('deliveries_0001');
CREATE INDEX ix_deliveries_waiting ON deliveries (received_at) WHERE state = 'received';
COMMIT;
