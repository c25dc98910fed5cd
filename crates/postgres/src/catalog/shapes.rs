//! Tables of system catalogs with their columns, as PostgreSQL 15 has them; columns that no driver asks for are left out.

/// Object ids of tables of `pg_catalog` that drivers name by casts; others follow [`OTHERS`].
const KNOWN: [(&str, i64); 9] = [
    ("pg_type", 1247),
    ("pg_attribute", 1249),
    ("pg_proc", 1255),
    ("pg_class", 1259),
    ("pg_database", 1262),
    ("pg_attrdef", 2604),
    ("pg_constraint", 2606),
    ("pg_description", 2609),
    ("pg_namespace", 2615),
];
const OTHERS: i64 = 12_000;

/// The object id of a table of `pg_catalog`; `None` if there is none of that name.
pub(super) fn table_oid(table: &str) -> Option<i64> {
    let place = SHAPES.iter().position(|(_, name, _)| *name == table)?;
    let known = KNOWN.iter().find(|(name, _)| *name == table).map(|(_, oid)| *oid);
    Some(known.unwrap_or(OTHERS + i64::try_from(place).unwrap_or_default()))
}

/// A table: its schema, its name, and its columns with their types.
pub(super) type Shape = (&'static str, &'static str, &'static str);

/// All tables of both schemas.
pub(super) const SHAPES: [Shape; 75] = [
    ("pg_catalog", "pg_namespace", "oid:oid nspname:name nspowner:oid nspacl:text[]"),
    (
        "pg_catalog",
        "pg_class",
        "oid:oid relname:name relnamespace:oid reltype:oid reloftype:oid relowner:oid relam:oid relfilenode:oid \
         reltablespace:oid relpages:int4 reltuples:float4 relallvisible:int4 reltoastrelid:oid relhasindex:bool \
         relisshared:bool relpersistence:char relkind:char relnatts:int2 relchecks:int2 relhasrules:bool relhastriggers:bool \
         relhassubclass:bool relrowsecurity:bool relforcerowsecurity:bool relispopulated:bool relreplident:char \
         relispartition:bool relrewrite:oid relfrozenxid:text relacl:text[] reloptions:text[] relpartbound:text relhasoids:bool",
    ),
    (
        "pg_catalog",
        "pg_attribute",
        "attrelid:oid attname:name atttypid:oid attstattarget:int4 attlen:int2 attnum:int2 attndims:int4 attcacheoff:int4 \
         atttypmod:int4 attbyval:bool attalign:char attstorage:char attcompression:char attnotnull:bool atthasdef:bool \
         atthasmissing:bool attidentity:char attgenerated:char attisdropped:bool attislocal:bool attinhcount:int4 \
         attcollation:oid attacl:text[] attoptions:text[] attfdwoptions:text[]",
    ),
    (
        "pg_catalog",
        "pg_type",
        "oid:oid typname:name typnamespace:oid typowner:oid typlen:int2 typbyval:bool typtype:char typcategory:char \
         typispreferred:bool typisdefined:bool typdelim:char typrelid:oid typsubscript:text typelem:oid typarray:oid \
         typinput:text typoutput:text typreceive:text typsend:text typalign:char typstorage:char typnotnull:bool \
         typbasetype:oid typtypmod:int4 typndims:int4 typcollation:oid typdefault:text typacl:text[]",
    ),
    (
        "pg_catalog",
        "pg_database",
        "oid:oid datname:name datdba:oid encoding:int4 datlocprovider:char datistemplate:bool datallowconn:bool \
         datconnlimit:int4 dattablespace:oid datcollate:text datctype:text daticulocale:text datcollversion:text datacl:text[]",
    ),
    (
        "pg_catalog",
        "pg_roles",
        "oid:oid rolname:name rolsuper:bool rolinherit:bool rolcreaterole:bool rolcreatedb:bool rolcanlogin:bool \
         rolreplication:bool rolconnlimit:int4 rolpassword:text rolvaliduntil:timestamptz rolbypassrls:bool rolconfig:text[]",
    ),
    ("pg_catalog", "pg_user", "usename:name usesysid:oid usecreatedb:bool usesuper:bool userepl:bool passwd:text"),
    ("pg_catalog", "pg_am", "oid:oid amname:name amhandler:text amtype:char"),
    (
        "pg_catalog",
        "pg_tables",
        "schemaname:name tablename:name tableowner:name tablespace:name hasindexes:bool hasrules:bool hastriggers:bool \
         rowsecurity:bool",
    ),
    ("pg_catalog", "pg_views", "schemaname:name viewname:name viewowner:name definition:text"),
    (
        "pg_catalog",
        "pg_settings",
        "name:text setting:text unit:text category:text short_desc:text extra_desc:text context:text vartype:text source:text \
         min_val:text max_val:text enumvals:text[] boot_val:text reset_val:text pending_restart:bool",
    ),
    ("pg_catalog", "pg_tablespace", "oid:oid spcname:name spcowner:oid spcacl:text[] spcoptions:text[]"),
    (
        "pg_catalog",
        "pg_language",
        "oid:oid lanname:name lanowner:oid lanispl:bool lanpltrusted:bool lanplcallfoid:oid laninline:oid lanvalidator:oid lanacl:text[]",
    ),
    (
        "pg_catalog",
        "pg_collation",
        "oid:oid collname:name collnamespace:oid collowner:oid collprovider:char collisdeterministic:bool collencoding:int4 \
         collcollate:text collctype:text colliculocale:text collversion:text",
    ),
    (
        "pg_catalog",
        "pg_stat_user_tables",
        "relid:oid schemaname:name relname:name seq_scan:int8 seq_tup_read:int8 idx_scan:int8 n_live_tup:int8 n_dead_tup:int8",
    ),
    // Those that have no rows.
    (
        "pg_catalog",
        "pg_index",
        "indexrelid:oid indrelid:oid indnatts:int2 indnkeyatts:int2 indisunique:bool indisprimary:bool indisexclusion:bool \
         indimmediate:bool indisclustered:bool indisvalid:bool indisready:bool indislive:bool indisreplident:bool indkey:int2[] \
         indcollation:oid[] indclass:oid[] indoption:int2[] indexprs:text indpred:text indnullsnotdistinct:bool",
    ),
    (
        "pg_catalog",
        "pg_constraint",
        "oid:oid conname:name connamespace:oid contype:char condeferrable:bool condeferred:bool convalidated:bool conrelid:oid \
         contypid:oid conindid:oid conparentid:oid confrelid:oid confupdtype:char confdeltype:char confmatchtype:char \
         conislocal:bool coninhcount:int4 connoinherit:bool conkey:int2[] confkey:int2[] conbin:text",
    ),
    ("pg_catalog", "pg_attrdef", "oid:oid adrelid:oid adnum:int2 adbin:text"),
    ("pg_catalog", "pg_description", "objoid:oid classoid:oid objsubid:int4 description:text"),
    ("pg_catalog", "pg_shdescription", "objoid:oid classoid:oid description:text"),
    (
        "pg_catalog",
        "pg_proc",
        "oid:oid proname:name pronamespace:oid proowner:oid prolang:oid prokind:char prosecdef:bool proretset:bool \
         provolatile:char pronargs:int2 prorettype:oid proargtypes:oid[] proallargtypes:oid[] proargmodes:text[] \
         proargnames:text[] prosrc:text proacl:text[] provariadic:oid proisstrict:bool",
    ),
    ("pg_catalog", "pg_enum", "oid:oid enumtypid:oid enumsortorder:float4 enumlabel:name"),
    ("pg_catalog", "pg_range", "rngtypid:oid rngsubtype:oid rngmultitypid:oid rngcollation:oid"),
    ("pg_catalog", "pg_inherits", "inhrelid:oid inhparent:oid inhseqno:int4 inhdetachpending:bool"),
    (
        "pg_catalog",
        "pg_trigger",
        "oid:oid tgrelid:oid tgparentid:oid tgname:name tgfoid:oid tgtype:int2 tgenabled:char tgisinternal:bool \
         tgconstrrelid:oid tgconstraint:oid tgattr:int2[] tgargs:text",
    ),
    (
        "pg_catalog",
        "pg_rewrite",
        "oid:oid rulename:name ev_class:oid ev_type:char ev_enabled:char is_instead:bool ev_action:text",
    ),
    (
        "pg_catalog",
        "pg_policy",
        "oid:oid polname:name polrelid:oid polcmd:char polpermissive:bool polroles:oid[] polqual:text polwithcheck:text",
    ),
    (
        "pg_catalog",
        "pg_statistic_ext",
        "oid:oid stxrelid:oid stxname:name stxnamespace:oid stxowner:oid stxstattarget:int4 stxkeys:int2[] stxkind:text[] \
         stxexprs:text",
    ),
    (
        "pg_catalog",
        "pg_extension",
        "oid:oid extname:name extowner:oid extnamespace:oid extversion:text extconfig:oid[]",
    ),
    ("pg_catalog", "pg_foreign_table", "ftrelid:oid ftserver:oid ftoptions:text[]"),
    (
        "pg_catalog",
        "pg_foreign_server",
        "oid:oid srvname:name srvowner:oid srvfdw:oid srvtype:text srvversion:text srvacl:text[] srvoptions:text[]",
    ),
    (
        "pg_catalog",
        "pg_foreign_data_wrapper",
        "oid:oid fdwname:name fdwowner:oid fdwhandler:oid fdwacl:text[] fdwoptions:text[]",
    ),
    (
        "pg_catalog",
        "pg_sequence",
        "seqrelid:oid seqtypid:oid seqstart:int8 seqincrement:int8 seqmax:int8 seqmin:int8 seqcache:int8 seqcycle:bool",
    ),
    (
        "pg_catalog",
        "pg_sequences",
        "schemaname:name sequencename:name sequenceowner:name start_value:int8 last_value:int8",
    ),
    (
        "pg_catalog",
        "pg_partitioned_table",
        "partrelid:oid partstrat:char partnatts:int2 partdefid:oid partattrs:int2[]",
    ),
    (
        "pg_catalog",
        "pg_publication",
        "oid:oid pubname:name pubowner:oid puballtables:bool pubinsert:bool pubupdate:bool pubdelete:bool pubtruncate:bool \
         pubviaroot:bool",
    ),
    ("pg_catalog", "pg_publication_rel", "oid:oid prpubid:oid prrelid:oid prqual:text prattrs:int2[]"),
    ("pg_catalog", "pg_publication_namespace", "oid:oid pnpubid:oid pnnspid:oid"),
    ("pg_catalog", "pg_subscription", "oid:oid subdbid:oid subname:name subowner:oid subenabled:bool"),
    (
        "pg_catalog",
        "pg_depend",
        "classid:oid objid:oid objsubid:int4 refclassid:oid refobjid:oid refobjsubid:int4 deptype:char",
    ),
    ("pg_catalog", "pg_shdepend", "dbid:oid classid:oid objid:oid refclassid:oid refobjid:oid deptype:char"),
    ("pg_catalog", "pg_opclass", "oid:oid opcmethod:oid opcname:name opcnamespace:oid opcintype:oid opcdefault:bool"),
    (
        "pg_catalog",
        "pg_operator",
        "oid:oid oprname:name oprnamespace:oid oprkind:char oprleft:oid oprright:oid oprresult:oid",
    ),
    ("pg_catalog", "pg_cast", "oid:oid castsource:oid casttarget:oid castfunc:oid castcontext:char castmethod:char"),
    ("pg_catalog", "pg_aggregate", "aggfnoid:oid aggkind:char aggnumdirectargs:int2"),
    ("pg_catalog", "pg_event_trigger", "oid:oid evtname:name evtevent:name evtowner:oid evtfoid:oid evtenabled:char"),
    ("pg_catalog", "pg_auth_members", "roleid:oid member:oid grantor:oid admin_option:bool"),
    ("pg_catalog", "pg_db_role_setting", "setdatabase:oid setrole:oid setconfig:text[]"),
    ("pg_catalog", "pg_default_acl", "oid:oid defaclrole:oid defaclnamespace:oid defaclobjtype:char defaclacl:text[]"),
    (
        "pg_catalog",
        "pg_matviews",
        "schemaname:name matviewname:name matviewowner:name ispopulated:bool definition:text",
    ),
    ("pg_catalog", "pg_indexes", "schemaname:name tablename:name indexname:name tablespace:name indexdef:text"),
    (
        "pg_catalog",
        "pg_stat_activity",
        "datid:oid datname:name pid:int4 usesysid:oid usename:name application_name:text client_addr:text state:text query:text \
         backend_start:timestamptz query_start:timestamptz wait_event_type:text wait_event:text backend_type:text",
    ),
    ("pg_catalog", "pg_locks", "locktype:text database:oid relation:oid pid:int4 mode:text granted:bool"),
    ("pg_catalog", "pg_prepared_xacts", "transaction:text gid:text prepared:timestamptz owner:name database:name"),
    ("pg_catalog", "pg_timezone_names", "name:text abbrev:text utc_offset:text is_dst:bool"),
    ("pg_catalog", "pg_get_keywords", "word:text catcode:char catdesc:text"),
    (
        "pg_catalog",
        "pg_conversion",
        "oid:oid conname:name connamespace:oid conforencoding:int4 contoencoding:int4 condefault:bool",
    ),
    ("pg_catalog", "pg_ts_config", "oid:oid cfgname:name cfgnamespace:oid cfgowner:oid cfgparser:oid"),
    ("pg_catalog", "pg_ts_dict", "oid:oid dictname:name dictnamespace:oid dicttemplate:oid dictinitoption:text"),
    ("pg_catalog", "pg_ts_parser", "oid:oid prsname:name prsnamespace:oid"),
    ("pg_catalog", "pg_ts_template", "oid:oid tmplname:name tmplnamespace:oid"),
    ("pg_catalog", "pg_user_mappings", "umid:oid srvid:oid srvname:name umuser:oid usename:name umoptions:text[]"),
    ("pg_catalog", "pg_largeobject_metadata", "oid:oid lomowner:oid lomacl:text[]"),
    (
        "pg_catalog",
        "pg_stats",
        "schemaname:name tablename:name attname:name null_frac:float4 n_distinct:float4 avg_width:int4",
    ),
    (
        "information_schema",
        "schemata",
        "catalog_name:name schema_name:name schema_owner:name default_character_set_name:name",
    ),
    (
        "information_schema",
        "tables",
        "table_catalog:name table_schema:name table_name:name table_type:text is_insertable_into:text is_typed:text \
         commit_action:text",
    ),
    (
        "information_schema",
        "columns",
        "table_catalog:name table_schema:name table_name:name column_name:name ordinal_position:int4 column_default:text \
         is_nullable:text data_type:text character_maximum_length:int4 character_octet_length:int4 numeric_precision:int4 \
         numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 interval_type:text character_set_name:name \
         collation_name:name domain_name:name udt_catalog:name udt_schema:name udt_name:name is_identity:text \
         identity_generation:text is_generated:text generation_expression:text is_updatable:text",
    ),
    ("information_schema", "views", "table_catalog:name table_schema:name table_name:name view_definition:text"),
    (
        "information_schema",
        "table_constraints",
        "constraint_catalog:name constraint_schema:name constraint_name:name table_catalog:name table_schema:name table_name:name \
         constraint_type:text",
    ),
    (
        "information_schema",
        "key_column_usage",
        "constraint_catalog:name constraint_schema:name constraint_name:name table_catalog:name table_schema:name table_name:name \
         column_name:name ordinal_position:int4 position_in_unique_constraint:int4",
    ),
    (
        "information_schema",
        "referential_constraints",
        "constraint_catalog:name constraint_schema:name constraint_name:name unique_constraint_schema:name \
         unique_constraint_name:name match_option:text update_rule:text delete_rule:text",
    ),
    (
        "information_schema",
        "constraint_column_usage",
        "table_catalog:name table_schema:name table_name:name column_name:name constraint_schema:name constraint_name:name",
    ),
    (
        "information_schema",
        "routines",
        "specific_schema:name specific_name:name routine_schema:name routine_name:name routine_type:text data_type:text",
    ),
    (
        "information_schema",
        "table_privileges",
        "grantor:name grantee:name table_catalog:name table_schema:name table_name:name privilege_type:text is_grantable:text",
    ),
    (
        "information_schema",
        "role_table_grants",
        "grantor:name grantee:name table_catalog:name table_schema:name table_name:name privilege_type:text is_grantable:text",
    ),
];
